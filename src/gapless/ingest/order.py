"""In which order do a table's rows stand, so that it depends on what was recorded and not on how the file lists it?

By lane (thread or device), start, longest first. Where all three are equal, by the numbers that the recorder gave in
the order of beginning (`External id` of ops, `Python id` of frames, correlation of calls and GPU work), which puts a
parent before its child; then by kind of event (runtime calls before the driver calls they make), category, name and
whatever else the rows say. Rows that still tie are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.ingest.gather import Rows
from gapless.ingest.groups import BUILDERS, TEXT_COLUMNS

I64 = NDArray[np.int64]

_BEGAN = ("external_id", "python_id", "correlation")
"""Columns that count events in the order in which they began; most telling first."""

_KINDS = list(BUILDERS)


def row_order(
    key: NDArray[Any], rows: Rows, names: Sequence[str], texts: Sequence[bytes], lane_of: Callable[[int], object]
) -> I64 | None:
    """The order of the rows; None if they stand in it already. `key` is the lane that comes first; `lane_of` gives a
    lane code's text."""
    if len(rows) < 2:
        return None
    order = None if _stand(key, rows) else np.lexsort((-rows.dur, rows.start, key))
    place = np.arange(len(rows)) if order is None else order
    tied = (key[place[1:]] == key[place[:-1]]) & (rows.start[place[1:]] == rows.start[place[:-1]])
    tied &= rows.dur[place[1:]] == rows.dur[place[:-1]]
    if not tied.any():
        return order
    run = np.cumsum(np.concatenate([[True], ~tied]))
    spots = np.flatnonzero(np.concatenate([[False], tied]) | np.concatenate([tied, [False]]))
    within = _by_content(rows, place[spots], run[spots], names, texts, lane_of)
    if order is None and (within[1:] > within[:-1]).all():
        return None
    settled = place.copy()
    settled[spots] = place[spots][within]
    return settled


def _stand(key: NDArray[Any], rows: Rows) -> bool:
    before, after = slice(None, -1), slice(1, None)
    same = key[before] == key[after]
    tie = same & (rows.start[before] == rows.start[after])
    wrong = (
        (key[before] > key[after])
        | (same & (rows.start[before] > rows.start[after]))
        | (tie & (rows.dur[before] < rows.dur[after]))
    )
    return not wrong.any()


def _by_content(
    rows: Rows, tied: I64, run: I64, names: Sequence[str], texts: Sequence[bytes], lane_of: Callable[[int], object]
) -> I64:
    """Tied rows in order inside their runs."""
    args = rows.args
    keys: list[NDArray[Any]] = [run, *(args[column][tied] for column in _BEGAN if column in args)]
    keys.append(_rank(rows.part[tied], lambda part: (_KINDS.index(rows.groups[part]), rows.categories[part])))
    keys.append(_rank(rows.name[tied], names.__getitem__))
    keys.append(_rank(rows.lane[tied], lane_of))
    for column in sorted(args.keys() - set(_BEGAN)):
        values = args[column][tied]
        keys.append(_rank(values, texts.__getitem__) if column in TEXT_COLUMNS else values)
    return np.lexsort(keys[::-1])


def _rank(codes: NDArray[Any], text_of: Callable[[int], Any]) -> I64:
    """Where the text of each code stands among all of them; a code says only which text was met first."""
    used, position = np.unique(codes, return_inverse=True)
    found = [text_of(code) for code in used.tolist()]
    rank = {text: i for i, text in enumerate(sorted(set(found)))}
    return np.array([rank[text] for text in found], dtype=np.int64)[position.reshape(-1)]
