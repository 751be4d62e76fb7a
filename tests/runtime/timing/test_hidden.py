"""The light sync detector: finds the user's line, and puts everything back."""

from __future__ import annotations

import warnings

import pytest
import torch

from gapless.runtime.timing import hidden


@pytest.fixture
def sync_mode(monkeypatch):
    """A stand-in for the CUDA build's debug mode."""
    state = {"mode": 0, "syncs": 0}
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: state["mode"])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: state.update(mode=mode))

    def synchronize(*_: object) -> None:
        state["syncs"] += 1

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    return state


def test_explicit_and_hidden_waits_are_listed_with_the_users_line(sync_mode):
    def subject() -> None:
        for _ in range(3):
            torch.cuda.synchronize()
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)

    sites = hidden.find_syncs(subject)
    assert [(s.kind, s.count, s.declared) for s in sites] == [("device", 3, True), ("operation", 1, False)]
    assert all(s.file == __file__ for s in sites)
    assert sites[0].line == subject.__code__.co_firstlineno + 2
    assert sync_mode["syncs"] == 3, "the real function still ran"


def test_everything_is_put_back_even_after_an_exception(sync_mode):
    before = torch.cuda.synchronize, torch.cuda.Event.synchronize, torch.cuda.Stream.synchronize
    show, filters = warnings.showwarning, list(warnings.filters)

    def subject() -> None:
        assert sync_mode["mode"] == "warn"
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        hidden.find_syncs(subject)
    assert (torch.cuda.synchronize, torch.cuda.Event.synchronize, torch.cuda.Stream.synchronize) == before
    assert warnings.showwarning is show and list(warnings.filters) == filters
    assert sync_mode["mode"] == 0


def test_other_warnings_pass_through(sync_mode):
    with pytest.warns(UserWarning, match="something else"):
        assert hidden.find_syncs(lambda: warnings.warn("something else", stacklevel=1)) == ()
