"""The terminal: verdict first, 24 lines at 80 columns, shares that add to 100, nothing hostile gets through."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gapless.model.report import DeviceAccount, Gain, Part, PerStep, Report, TrustCheck, Verdict
from gapless.render import markdown, text

from . import factories, snapshots

REPORTS = {"report": factories.report(), "healthy": factories.healthy(), "bare": factories.bare()}


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", REPORTS)
def test_snapshots(name: str, full: bool, width: int) -> None:
    shown = text.render(REPORTS[name], full=full, width=width)
    snapshots.check(f"{name}{'.full' if full else ''}.{width}.txt", shown)


def longest(report: Report) -> Report:
    """`report` with everything as long as it gets."""
    words = "because of something long that takes many words to say and then some more of them " * 8
    account = DeviceAccount(
        0, 4, [*report.accounting[0].parts, Part("communication", None, 1, 0.1), Part("unrecorded", None, 1, 0)]
    )
    return replace(
        report,
        verdict=Verdict("host", words),
        trust=[TrustCheck("x", "fail", words), TrustCheck("y", "warn", words), TrustCheck("z", "note", words)],
        findings=[factories.finding(f"code-{i}", title=words) for i in range(9)],
        accounting=[account, account],
        trace=report.trace | {"path": "a folder/" + "f" * 300 + ".json", "rank": 3, "world_size": 8},
    )


@pytest.mark.parametrize("report", [*REPORTS.values(), factories.hostile(), longest(factories.report())])
def test_the_first_screen_fits(report: Report) -> None:
    lines = text.render(report, width=80).splitlines()
    assert len(lines) <= text.SCREEN_LINES
    commands = [line for line in lines if line.startswith("Next ")]
    assert commands, "a next command is always printed"
    assert all(len(line) <= 80 for line in lines if line not in commands)
    assert any(re.fullmatch(r"Checks \d+ found · \d+ clean · \d+ cannot tell", line) for line in lines)
    assert any(line.startswith("Trust ") for line in lines)


def test_the_verdict_is_the_first_line() -> None:
    assert text.render(factories.healthy(), width=80).startswith("The GPU computes without a break")


def test_fewer_findings_rather_than_more_lines() -> None:
    shown = text.render(longest(factories.report()), width=80)
    listed = len(re.findall(r"^ \d ", shown, re.MULTILINE))
    assert listed >= 1
    assert f"{9 - listed} more with --full" in shown


@pytest.mark.parametrize("report", [factories.report(), longest(factories.report()), factories.healthy()])
def test_printed_shares_add_to_100(report: Report) -> None:
    shown = text.render(report, width=140)
    bars = [line for line in shown.splitlines() if line.endswith("= 100 %")]
    assert len(bars) == 2
    for bar in bars:
        assert sum(int(n) for n in re.findall(r"(\d+) % [a-z]", bar)) == 100


def test_idle_reasons_add_to_the_idle_share() -> None:
    shown = text.render(factories.report(), width=140)
    idle = int(re.search(r"(\d+) % idle", shown)[1])
    reasons = sum(int(n) for n in re.findall(r"(\d+) % (?:while|otherwise)", shown))
    assert reasons == idle


def test_colour_only_where_asked() -> None:
    assert "\x1b" not in text.render(factories.report(), full=True)
    coloured = text.render(factories.report(), color=True)
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert plain.split() == text.render(factories.report()).split()


@pytest.mark.parametrize("full", [False, True])
def test_hostile_names_do_nothing(full: bool) -> None:
    shown = text.render(factories.hostile(), full=full, width=80)
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert "[bold]b[/bold]" in shown, "rich markup is shown, not obeyed"
    assert len(shown) < 60_000


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (Gain(1.0, 1.45, 1.3, 1.6, "replay"), "predicted 1.45x faster (1.30x to 1.60x)"),
        (Gain(1.0, 1.002, 0.98, 1.03, "replay"), "no gain expected (0.98x to 1.03x)"),
        (Gain(None, None, None, None, "replay"), "gain not known"),
        (Gain(1.0, 1.2, None, None, "bound"), "predicted 1.20x faster"),
    ],
)
def test_a_gain_is_a_prediction_with_bounds(gain: Gain, words: str) -> None:
    report = factories.report(findings=[factories.finding(gain=gain)], all_fixes=None)
    assert f"   {words} · " in text.render(report)


def test_a_path_with_a_blank_can_be_pasted() -> None:
    report = factories.report(trace=factories.report().trace | {"path": "my runs/a b.json"})
    assert "gapless report 'my runs/a b.json' --full" in text.render(report)


def test_no_check_is_not_a_clean_bill() -> None:
    assert "No check could look" in text.render(factories.bare())
    assert "Nothing to fix was found by the 2 checks" in text.render(factories.healthy())


@pytest.mark.parametrize("full", [False, True])
def test_a_finding_that_no_event_stands_for_ends_with_its_gain(full: bool) -> None:
    """Garbage collections known from the recorder's metadata have no place and no event."""
    bare = replace(factories.finding(), sites=[], where=None, per_step=PerStep(0, 0.0))
    for shown in (
        text.render(factories.report(findings=[bare]), full=full, width=80),
        markdown.render(factories.report(findings=[bare]), full=full),
    ):
        assert "0 ms a step" not in shown
        assert not re.search(r"·\s*(·|$)", shown, re.MULTILINE)
