"""How does a numpy column become a polars column of the declared type?"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gapless.ingest.events import MISSING

T = TypeVar("T")

NAME_LIMIT = 16384
"""Characters of a name that are kept (kernel names reach six thousand). Longer ones are cut and end in a digest, so
that distinct names stay distinct."""

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def clean_name(name: str) -> str:
    """The name without memory addresses (they differ in every run) and of bounded length."""
    if "0x" in name:
        name = _ADDRESS.sub("", name)
    if len(name) > NAME_LIMIT:
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        return f"{name[: NAME_LIMIT - 10]}…#{digest}"
    return name


def json_text(text: bytes) -> str:
    """The same JSON with uniform blanks."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
    except (ValueError, RecursionError):
        return plain(text)


def plain(text: bytes) -> str:
    """The text, bytes that are not UTF-8 replaced."""
    return text.decode("utf-8", "replace")


def enum(
    name: str,
    codes: NDArray[np.integer[Any]],
    texts: Sequence[T],
    clean: Callable[[T], str],
    null: NDArray[np.bool_] | None = None,
) -> pl.Series:
    """A dictionary column: code i means `clean(texts[i])`. Categories are those in use, sorted."""
    if null is not None and not null.any():
        null = None
    used = np.zeros(len(texts), dtype=np.bool_)
    used[codes if null is None else codes[~null]] = True
    cleaned = {code: clean(texts[code]) for code in np.flatnonzero(used).tolist()}
    categories = sorted(set(cleaned.values()))
    position = {category: i for i, category in enumerate(categories)}
    remap = np.zeros(max(len(texts), 1), dtype=np.uint32)
    for code, text in cleaned.items():
        remap[code] = position[text]
    kind = pl.Enum(categories)
    if not categories:
        return pl.Series(name, [None] * len(codes), dtype=kind)
    values = pl.Series(name, remap[codes])
    if null is not None:
        values = values.set(pl.Series(null), None)
    return values.cat.to(kind) if len(values) else pl.Series(name, [], dtype=kind)


def constant(name: str, values: NDArray[np.integer[Any]], words: Sequence[str]) -> pl.Series:
    """A dictionary column with the closed list of categories `words`; `values` are positions in it."""
    kind = pl.Enum(words)
    return pl.Series(name, values.astype(np.uint32)).cat.to(kind) if len(values) else pl.Series(name, [], dtype=kind)


def nullable(
    name: str, values: NDArray[np.integer[Any]], dtype: pl.DataType, missing: NDArray[np.bool_] | None = None
) -> pl.Series:
    """An integer column where `MISSING` (or `missing`) becomes null."""
    gone = values == MISSING if missing is None else missing
    if not gone.any():
        return pl.Series(name, values).cast(dtype, strict=False)
    if gone.all():
        return (
            pl.Series(name, [None], dtype=dtype).new_from_index(0, len(values))
            if len(values)
            else pl.Series(name, [], dtype=dtype)
        )
    return pl.Series(name, values).set(pl.Series(gone), None).cast(dtype, strict=False)
