"""What is said about a box: the facts its record holds, and in words what a wait waited for?"""

from __future__ import annotations

import numpy as np
import polars as pl

from gapless.analyses.kernel_names import decode
from gapless.analyses.study import Study
from gapless.tables.coding import categories, codes
from gapless.tables.intervals import Int, as_ns

NAME_CHARS = 1000


class Strings:
    """Interned text: row 0 is ''."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._rows: dict[str, int] = {"": 0}

    def row(self, text: str) -> int:
        """The row of a text, added if new."""
        found = self._rows.get(text)
        if found is None:
            found = self._rows[text] = len(self.texts)
            self.texts.append(text)
        return found

    def rows(self, texts: pl.Series) -> Int:
        """The rows of a column of text; null is ''."""
        if texts.len() == 0:
            return np.zeros(0, dtype=np.int64)
        distinct = texts.fill_null("").unique(maintain_order=True)
        coded = texts.fill_null("").cast(pl.Enum(distinct))
        table = np.array([self.row(text) for text in distinct.to_list()], dtype=np.int64)
        return np.asarray(table[coded.to_physical().cast(pl.Int64).to_numpy()], dtype=np.int64)

    def categories(self, column: pl.Series, rows: Int) -> Int:
        """The rows of an enum column's texts, for these rows of the column only."""
        texts = categories(column)
        code = codes(column)[rows]
        table = np.zeros(len(texts) + 1, dtype=np.int64)
        for one in np.unique(code).tolist():
            if one >= 0:
                table[one] = self.row(texts[one][:NAME_CHARS])
        return table[code]


def op_facts(s: Study, rows: Int) -> pl.Series:
    """`key: value` lines of ops."""
    ops = s.raw.ops[rows]
    parts = [
        _line("shapes", ops["input_dims"]),
        _line("types", ops["input_types"]),
        _line("values", ops["concrete_inputs"]),
    ]
    return _joined(parts, ops.height)


def call_facts(s: Study, rows: Int) -> pl.Series:
    """`key: value` lines of runtime calls."""
    calls = s.raw.calls[rows]
    parts = [_line("bytes", calls["size_bytes"]), _line("correlation", calls["correlation"].replace(-1, None))]
    return _joined(parts, calls.height)


def activity_facts(s: Study, rows: Int) -> pl.Series:
    """`key: value` lines of GPU work."""
    work = s.raw.activities[rows]
    full = {text: decode(text).short for text in categories(work["name"])}
    long = [text if full[text] != text else None for text in work["name"].cast(pl.String).to_list()]
    parts = [
        _line("full name", pl.Series(long, dtype=pl.String)),
        _line("grid", _triple(work, "grid")),
        _line("block", _triple(work, "block")),
        _line("registers per thread", work["registers"]),
        _line("shared memory per block, bytes", work["shared_bytes"]),
        _line("estimated occupancy, %", work["occupancy_pct"]),
        _line("bytes", work["size_bytes"]),
        _line("graph", work["graph_id"].replace(0, None)),
        _line("correlation", work["correlation"].replace(-1, None)),
    ]
    return _joined(parts, work.height)


def _triple(work: pl.DataFrame, name: str) -> pl.Series:
    text = pl.format("{} x {} x {}", *[pl.col(f"{name}_{axis}") for axis in "xyz"])
    return work.select(out=pl.when(pl.col(f"{name}_x").is_not_null()).then(text))["out"]


def _line(key: str, values: pl.Series) -> pl.Series:
    text = values.cast(pl.String).str.slice(0, NAME_CHARS)
    return pl.select(pl.lit(f"{key}: ") + text).to_series()


def _joined(parts: list[pl.Series], height: int) -> pl.Series:
    if height == 0:
        return pl.Series(dtype=pl.String)
    frame = pl.DataFrame({str(i): part for i, part in enumerate(parts)})
    return frame.select(out=pl.concat_str(pl.all(), separator="\n", ignore_nulls=True))["out"]


def wait_words(s: Study, calls: Int) -> list[str]:
    """For rows of `calls` that block: what each waited for, in sentences; '' where that was not studied."""
    where = {call: i for i, call in enumerate(s.syncs.call.tolist())}
    work = s.raw.activities
    start = as_ns(work["start_ns"].to_numpy())
    device = as_ns(work["device"].to_numpy())
    by_device = {d: np.sort(start[device == d]) for d in np.unique(device).tolist()}
    name_codes, names = codes(work["name"]), categories(work["name"])
    c0 = as_ns(s.raw.calls["start_ns"].to_numpy())
    dur = as_ns(s.raw.calls["dur_ns"].to_numpy())
    out = []
    for call in calls.tolist():
        i = where.get(call)
        if i is None:
            out.append("")
            continue
        waited = int(s.syncs.waited_activity[i])
        texts = [f"The host stands still for {_time(int(dur[call]))}."]
        if waited >= 0:
            begun = by_device[int(s.syncs.device[i])]
            end = int(s.syncs.work_end[i])
            count = int(np.searchsorted(begun, end) - np.searchsorted(begun, int(c0[call])))
            texts.append(_for_what(s, i, decode(names[name_codes[waited]]).short, max(count, 1), _launcher(s, waited)))
        else:
            texts.append("No recorded GPU work was pending: this is what the call itself costs, or untraced work.")
        idle = int(s.syncs.idle_after[i])
        if idle > 0 and waited >= 0:
            texts.append(f"When that work was done the GPU had nothing left to do and idled for {_time(idle)}.")
        elif idle > 0:
            texts.append(f"The GPU had nothing to do then, and idled for {_time(idle)} until its next work.")
        elif waited >= 0:
            texts.append("The GPU had more work queued, so it did not idle.")
        out.append(" ".join(texts))
    return out


def _for_what(s: Study, i: int, last: str, count: int, launcher: str) -> str:
    gpu, copy = int(s.syncs.gpu_work[i]), int(s.syncs.copy[i])
    parts = [f"{_time(ns)} of {what}" for ns, what in ((gpu, "kernels"), (copy, "copies")) if ns > 0]
    if int(s.syncs.untraced[i]) > 0:
        parts.append(f"{_time(int(s.syncs.untraced[i]))} of work that was not recorded")
    pieces = "piece of GPU work" if count == 1 else "pieces of GPU work begun meanwhile"
    by = f", launched by {launcher}" if launcher else ""
    return f"It waits for {' and '.join(parts) or 'GPU work'}: {count} {pieces}, the last one {last}{by}."


def _launcher(s: Study, activity: int) -> str:
    call = int(s.links.launch_of[activity])
    op = int(s.links.top_op_of_call[call]) if call >= 0 else -1
    return str(s.raw.ops["name"][op])[:80] if op >= 0 else ""


def _time(ns: int) -> str:
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns} ns"
