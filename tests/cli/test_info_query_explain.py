"""`info` says what a file can answer, `query` runs SQL over every table, `explain` prints a check's page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from gapless.model.schema import TABLES
from gapless.rules.registry import pages

from .harness import BEFORE, gapless, one_line

PAGES = pages()


def test_info_says_what_the_file_can_tell() -> None:
    shown = gapless("info", BEFORE, "--no-cache")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "yes    which line of your program is to blame" in shown.stdout
    assert "no     what allocated memory" in shown.stdout
    value = json.loads(gapless("info", BEFORE, "--no-cache", "--format", "json").stdout)
    assert value["schema"] == "gapless.info/1"
    assert value["tables"]["activities"] > 0
    assert {a["question"] for a in value["answers"] if a["yes"]}


def query(*words: str | Path) -> str:
    shown = gapless("query", BEFORE, *words, "--no-cache")
    assert (shown.returncode, shown.stderr) == (0, ""), shown.stderr
    return shown.stdout


COUNT = "select name, count(*) as n from calls group by name order by n desc, name"


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    rows = json.loads(query(COUNT, "--format", "json"))
    assert rows[0]["n"] >= rows[-1]["n"] > 0
    assert [(r["name"], int(r["n"])) for r in csv.DictReader(io.StringIO(query(COUNT, "--format", "csv")))] == [
        (r["name"], r["n"]) for r in rows
    ]
    target = tmp_path / "q.parquet"
    gapless("query", BEFORE, COUNT, "--no-cache", "-o", target)
    assert pl.read_parquet(target).with_columns(pl.col("name").cast(pl.String)).to_dicts() == rows
    table = query(COUNT)
    assert all(r["name"] in table for r in rows)


def test_a_long_answer_is_cut_and_says_so() -> None:
    assert "more rows (--limit 0 shows all)" in query("select start_ns from ops", "--limit", "3")
    assert "more rows" not in query("select start_ns from ops limit 3")


@pytest.mark.parametrize("name", [t.name for t in TABLES])
def test_every_table_can_be_read(name: str) -> None:
    assert "n" in query(f"select count(*) as n from {name}", "--format", "csv").splitlines()[0]


@pytest.mark.parametrize("name", ["kernels", "copies", "launches", "syncs", "gaps", "steps"])
def test_derived_tables_too(name: str) -> None:
    assert query(f"select * from {name} limit 1", "--format", "json").startswith("[")


def test_the_catalogue_lists_every_column() -> None:
    shown = gapless("query", "--tables").stdout
    for table in TABLES:
        assert f"{table.name}: {table.doc}" in shown
        assert all(f"  {c.name} " in shown for c in table.columns)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "a query needs a trace and SQL"),
        ([BEFORE], "a query needs a trace and SQL"),
        ([BEFORE, "select * from nosuch", "--no-cache"], "the tables are threads"),
        ([BEFORE, "selec", "--no-cache"], "the query cannot run"),
        ([BEFORE, "select nosuch from ops", "--no-cache"], "nosuch"),
        ([BEFORE, "select 1", "-o", "x.xlsx"], "no format goes with this name"),
    ],
)
def test_a_query_that_cannot_run_gets_one_line(words: list[str | Path], says: str) -> None:
    assert says in one_line(gapless("query", *words))


def test_a_spreadsheet_gets_no_formula(tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    name = "=cmd|' /C calc'!A0\x1b[31m"
    trace.write_text(json.dumps([{"ph": "X", "cat": "cpu_op", "name": name, "ts": 1, "dur": 2, "pid": 1, "tid": 1}]))
    shown = gapless("query", trace, "select name from ops", "--no-cache", "--format", "csv")
    assert shown.stdout == "name\n'=cmd|' /C calc'!A0\\x1b[31m\n"


def test_explain_prints_a_page() -> None:
    listed = gapless("explain").stdout
    for code in PAGES:
        assert code in listed
    code = next(iter(PAGES))
    assert gapless("explain", code.upper()).stdout == PAGES[code].rstrip("\n") + "\n"
    assert "\x1b[" in gapless("explain", code, "--color", "always").stdout


def test_explain_of_an_unknown_code() -> None:
    code = next(iter(PAGES))
    assert f"did you mean {code}" in one_line(gapless("explain", code[:-1]))
    assert "lists them" in one_line(gapless("explain", "zzzzzz"))


def test_names_are_text_to_a_query() -> None:
    rows = json.loads(query("select name || '!' as n from calls where name like '%Launch%'", "--format", "json"))
    assert rows
    assert all("Launch" in row["n"] and row["n"].endswith("!") for row in rows)
