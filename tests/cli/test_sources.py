"""What the words of a command line stand for: files, folders, globs, stdin, addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.cli.sources import Source, expand, natural
from gapless.model.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("rank10.json", "rank2.json.gz", "notes.txt", "rank1.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "deep.json").mkdir()
    return tmp_path


def names(found: list[Source]) -> list[str]:
    return [Path(s.path).name for s in found]


def test_a_folder_means_its_traces_in_natural_order(folder: Path) -> None:
    found = expand([str(folder)])
    assert names(found) == ["rank1.json", "rank2.json.gz", "rank10.json"]
    assert not any(s.named for s in found)


def test_a_glob_the_same(folder: Path) -> None:
    assert names(expand([f"{folder}/rank*.json*"])) == ["rank1.json", "rank2.json.gz", "rank10.json"]


def test_a_window_with_stacks_is_no_rank_of_its_own(folder: Path) -> None:
    for name in ("rank1.stack.json.gz", "rank2.stack.json", "alone.stack.json"):
        (folder / name).write_text("{}")
    wanted = ["alone.stack.json", "rank1.json", "rank2.json.gz", "rank10.json"]
    assert names(expand([str(folder)])) == wanted
    assert names(expand([f"{folder}/*.json*"])) == wanted
    assert names(expand([str(folder / "rank1.stack.json.gz")])) == ["rank1.stack.json.gz"]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path: Path) -> None:
    odd = tmp_path / "a[1].json"
    odd.write_text("{}")
    assert expand([str(odd)]) == [Source(str(odd), named=True)]


def test_nothing_is_read_twice(folder: Path) -> None:
    one = str(folder / "rank1.json")
    assert names(expand([one, one, str(folder)])) == ["rank1.json", "rank2.json.gz", "rank10.json"]


def test_stdin_and_addresses_pass() -> None:
    assert expand(["-"]) == [Source("-")]
    assert expand(["s3://bucket/x.json"]) == [Source("s3://bucket/x.json")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["{}/none*.json"], "no file matches"),
        (["{}/no.json"], "no such file"),
        (["-", "{}/rank1.json"], "cannot be mixed"),
    ],
)
def test_what_is_not_there_is_said(folder: Path, words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        expand([w.format(folder) for w in words])


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no"):
        expand([str(tmp_path)])


def test_natural_order_mixes_numbers_and_words() -> None:
    assert sorted(["b", "a10", "a9", "10", "9"], key=natural) == ["9", "10", "a9", "a10", "b"]
