"""What does `gapless query TRACE SQL` do? It runs SQL over the tables of one trace and writes the rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from gapless.cli import options, output
from gapless.cli.sources import expand
from gapless.model.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

NAME = "query"
HELP = "run SQL over the tables of a trace"
FORMATS = ("table", "csv", "json", "parquet")
_SUFFIXES = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".txt": "table"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("trace", nargs="?", metavar="TRACE", help="a trace; - is stdin")
    parser.add_argument(
        "sql", nargs="?", metavar="SQL", help='for example "select name, count(*) from calls group by name"'
    )
    parser.add_argument("--tables", action="store_true", help="list the tables and their columns, and stop")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="most rows of a table (default 50; 0: all)")
    options.add_output(parser, list(FORMATS))
    options.add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Run the query."""
    if args.tables:
        output.write(catalogue(), args.output)
        return 0
    if args.trace is None or args.sql is None:
        raise UsageError(
            'a query needs a trace and SQL: gapless query TRACE "select ..." (tables: gapless query --tables)'
        )
    sources = expand([args.trace])
    if len(sources) != 1:
        raise UsageError(f"{args.trace}: {len(sources)} files, but a query reads one trace; name one of them")
    form = args.format or _by_name(args.output)
    rows = _execute(sources[0].path, args)
    if form == "parquet":
        output.write_bytes(_parquet(rows), args.output)
    else:
        output.write({"table": _table, "csv": _csv, "json": _json}[form](rows, args), args.output)
    return 0


def catalogue() -> str:
    """Every table with its question and columns, as `gapless query --tables` prints it."""
    from gapless.model.schema import TABLES

    parts = []
    for table in TABLES:
        wide = max(len(c.name) for c in table.columns)
        lines = [
            f"  {c.name:<{wide}}  {c.dtype:<4}  {c.doc}{' (may be null)' if c.null else ''}" for c in table.columns
        ]
        parts.append("\n".join([f"{table.name}: {table.doc}", *lines]))
    return "\n\n".join(parts) + "\n"


def _by_name(target: str | None) -> str:
    if target is None or target == "-":
        return "table"
    for suffix, form in _SUFFIXES.items():
        if target.endswith(suffix):
            return form
    raise UsageError(f"{target}: no format goes with this name; end it in {', '.join(_SUFFIXES)}, or pass --format")


def _execute(path: str, args: argparse.Namespace) -> pl.DataFrame:
    import polars as pl
    from polars import selectors

    from gapless.cli.reading import load

    # Names as text, so that LIKE and || work; lazily, so that only what the query reads is converted.
    named = selectors.enum()
    frames = {
        name: frame.lazy().with_columns(named.cast(pl.String))
        for name, frame in load(path, args).frames_by_name().items()
    }
    try:
        return pl.SQLContext(frames=frames).execute(args.sql, eager=True)
    except pl.exceptions.PolarsError as error:
        reason = str(error).split("\n", 1)[0]
        known = ", ".join(frames)
        raise UsageError(
            f"the query cannot run: {reason}; the tables are {known} (columns: gapless query --tables)"
        ) from error


def _table(rows: pl.DataFrame, args: argparse.Namespace) -> str:
    from gapless.render import safe, text
    from gapless.render.document import Column, Table

    shown = rows if args.limit <= 0 else rows.head(args.limit)
    columns = [
        Column(safe.line(name, 60), "right" if kind.is_numeric() else "left", name=not kind.is_numeric())
        for name, kind in rows.schema.items()
    ]
    cells = [[_cell(value) for value in row] for row in shown.iter_rows()]
    color = args.output is None and output.color(args)
    page = text.draw([Table("", columns, cells)], width=output.width(), color=color)
    left = rows.height - shown.height
    return page + (f"{left} more rows (--limit 0 shows all)\n" if left else "")


def _cell(value: object) -> str:
    from gapless.render import safe

    if value is None:
        return "null"
    return f"{value:.6g}" if isinstance(value, float) else safe.name(value)


def _csv(rows: pl.DataFrame, _: argparse.Namespace) -> str:
    import polars as pl

    from gapless.render import safe

    nested = [name for name, kind in rows.schema.items() if kind.is_nested()]
    if nested:
        raise UsageError(f"column {nested[0]}: lists and structs do not fit into CSV; use --format json or parquet")
    text = [name for name, kind in rows.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    changed = [_each_text(rows[name].cast(pl.String), safe.csv_cell) for name in text]
    return rows.with_columns(changed).rename(safe.csv_cell).write_csv()


def _each_text(column: pl.Series, change: Callable[[str], str]) -> pl.Series:
    """`change` applied once to each distinct text of the column."""
    new = {old: change(old) for old in column.unique() if old is not None}
    return column.replace({old: text for old, text in new.items() if old != text})


def _json(rows: pl.DataFrame, _: argparse.Namespace) -> str:
    from gapless.render import json_

    return json_.dumps(rows.to_dicts())


def _parquet(rows: pl.DataFrame) -> bytes:
    import io

    buffer = io.BytesIO()
    rows.write_parquet(buffer)
    return buffer.getvalue()
