"""How is work done once per distinct text instead of once per row? Helpers for dictionary-encoded columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.tables.intervals import Int


def categories(column: pl.Series) -> list[str]:
    """The distinct texts an enum column may hold, in code order."""
    dtype = column.dtype
    if not isinstance(dtype, pl.Enum):
        raise TypeError(f"column {column.name!r} is {dtype}, not an enum")
    return list(dtype.categories)


def codes(column: pl.Series) -> Int:
    """The code of each row, -1 for null."""
    physical = column.to_physical()
    if physical.null_count():
        return physical.cast(pl.Int64).fill_null(-1).to_numpy()
    return physical.to_numpy().astype(np.int64)


def per_category(column: pl.Series, value: Callable[[str], int], null: int = -1) -> Int:
    """`value(text)` for each row, computed once per distinct text; `null` where the row is null."""
    table = np.array([*(value(text) for text in categories(column)), null], dtype=np.int64)
    return table[codes(column)]


def matches(column: pl.Series, predicate: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Where does `predicate(text)` hold? False for null."""
    return per_category(column, lambda text: int(predicate(text)), null=0).astype(bool)


def decode(column: pl.Series, rows: Int) -> list[str | None]:
    """The text of each of `rows`; None for row -1 and for null."""
    texts = categories(column)
    all_codes = codes(column)
    return [None if row < 0 or all_codes[row] < 0 else texts[all_codes[row]] for row in rows.tolist()]
