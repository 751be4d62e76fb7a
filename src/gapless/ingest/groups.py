"""Which columns does each group of events give, and how are they taken from its `args`?

Every builder gets the `args` of one group's events in one chunk as raw text and returns arrays of equal length.
Integers that are missing are `MISSING`; text columns hold codes of `Interns.texts`, 0 for missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from gapless.ingest import events as ev
from gapless.ingest.categories import Group
from gapless.ingest.events import MISSING
from gapless.ingest.interns import Interns
from gapless.ingest.lenient import decode_args

Arrays = dict[str, NDArray[Any]]
Builder = Callable[[list[Raw], Interns], Arrays]

_op = msgspec.json.Decoder(list[ev.OpArgs])
_frame = msgspec.json.Decoder(list[ev.FrameArgs])
_call = msgspec.json.Decoder(list[ev.CallArgs])
_activity = msgspec.json.Decoder(list[ev.ActivityArgs])
_gpu_sync = msgspec.json.Decoder(list[ev.GpuSyncArgs])
_memory = msgspec.json.Decoder(list[ev.MemoryArgs])
_names = msgspec.json.Decoder(list[ev.NameArgs])

_kind, _old_dims, _finished = attrgetter("kind"), attrgetter("input_dims_old"), attrgetter("finished")
_described = attrgetter("collective", "kernel_hash")
_NOTHING = (ev.NO_TEXT, ev.NO_TEXT)

_COPY_DIRECTIONS = {"0": b"HtoH", "1": b"HtoD", "2": b"DtoH", "3": b"DtoD"}
"""hipMemcpyKind as the API record carries it."""


def integers(values: list[int]) -> NDArray[np.int64]:
    """An int64 array; numbers that do not fit become `MISSING`."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        return np.array([v if -(2**63) <= v < 2**63 else MISSING for v in values], dtype=np.int64)


def _ints(rows: Iterable[Any], name: str) -> NDArray[np.int64]:
    return integers(list(map(attrgetter(name), rows)))


def _either(new: NDArray[np.int64], old: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(new == MISSING, old, new)


def _codes(values: list[int]) -> NDArray[np.int32]:
    return np.array(values, dtype=np.int32)


def _op_columns(texts: list[Raw], interns: Interns) -> Arrays:
    rows = decode_args(_op, ev.OpArgs, texts)
    code = interns.texts
    out: Arrays = {name: _ints(rows, name) for name in ("seq", "fwd_thread")}
    out["external_id"] = _either(_ints(rows, "external_id"), _ints(rows, "external_id_old"))
    old = list(map(_old_dims, rows))
    for name in ("concrete_inputs", "input_types", "input_strides", "input_dims"):
        found: Iterable[Raw] = map(attrgetter(name), rows)
        if name == "input_dims" and old.count(ev.NO_TEXT) < len(old):
            found = (new if len(new) else before for new, before in zip(found, old, strict=True))
        out[name] = np.fromiter(map(code.__getitem__, map(bytes, found)), np.int32, len(rows))
    out["finished"] = np.fromiter(map(_finished, rows), np.bool_, len(rows))
    out["extra"] = np.zeros(len(rows), dtype=np.int32)
    described = list(map(_described, rows))
    if described.count(_NOTHING) < len(described):
        for i, found_texts in enumerate(described):
            if found_texts != _NOTHING:
                out["extra"][i] = code[bytes(texts[i])]
    return out


def _frame_columns(texts: list[Raw], interns: Interns) -> Arrays:
    rows = decode_args(_frame, ev.FrameArgs, texts)
    code = interns.texts
    return {
        "python_id": _ints(rows, "python_id"),
        "parent_id": integers([-1 if row.parent_id is None else row.parent_id for row in rows]),
        "call_from": _codes(
            [0 if row.call_from is None else code[row.call_from.encode("utf-8", "replace")] for row in rows]
        ),
    }


def _size(*values: int | str | None) -> int:
    for value in values:
        if isinstance(value, int):
            return value
        if isinstance(value, str) and value.isdecimal() and len(value) < 19:
            return int(value)
    return MISSING


def _sizes(rows: list[ev.CallArgs]) -> NDArray[np.int64]:
    pairs = list(map(attrgetter("bytes", "size"), rows))
    if pairs.count((None, None)) == len(pairs):
        return np.full(len(pairs), MISSING, dtype=np.int64)
    return integers([_size(*pair) for pair in pairs])


def _call_columns(texts: list[Raw], interns: Interns) -> Arrays:
    rows = decode_args(_call, ev.CallArgs, texts)
    directions = {kind: interns.texts[text] for kind, text in _COPY_DIRECTIONS.items()}
    return {
        "correlation": _ints(rows, "correlation"),
        "external_id": _either(_ints(rows, "external_id"), _ints(rows, "external_id_old")),
        "size_bytes": _sizes(rows),
        "copy_kind": _codes([0 if kind is None else directions.get(str(kind), 0) for kind in map(_kind, rows)]),
    }


def _three(rows: list[ev.ActivityArgs], name: str, out: Arrays, axes: str) -> None:
    values = list(map(attrgetter(name), rows))
    if None in values:
        values = [(MISSING, MISSING, MISSING) if value is None else value for value in values]
    flat = integers(list(chain.from_iterable(values))).reshape(-1, 3)
    for axis in range(3):
        out[f"{axes}_{'xyz'[axis]}"] = np.ascontiguousarray(flat[:, axis])


def _copy_name(row: ev.ActivityArgs) -> bytes:
    """The name Kineto gives a copy or memset, from the args that the `cupti_monitor` writer uses instead."""
    if row.copy_kind:
        ends = [str(kind or "unknown").capitalize() for kind in (row.src_kind, row.dst_kind)]
        return f"Memcpy {row.copy_kind} ({ends[0]} -> {ends[1]})".encode("utf-8", "replace")
    if row.memory_kind:
        return f"Memset ({row.memory_kind.capitalize()})".encode("utf-8", "replace")
    return b""


def _activity_columns(texts: list[Raw], interns: Interns) -> Arrays:
    rows = decode_args(_activity, ev.ActivityArgs, texts)
    names = ("device", "stream", "correlation", "registers", "shared_bytes", "size_bytes", "graph_id", "graph_node")
    out: Arrays = {name: _ints(rows, name) for name in names}
    out["external_id"] = _either(_ints(rows, "external_id"), _ints(rows, "external_id_old"))
    out["peer_device"] = _ints(rows, "to_device")
    out["device"] = _either(out["device"], _ints(rows, "from_device"))
    out["occupancy_pct"] = np.array([row.occupancy_pct for row in rows], dtype=np.float64)
    _three(rows, "grid", out, "grid")
    _three(rows, "block", out, "block")
    out["other_name"] = _codes([interns.texts[_copy_name(row)] for row in rows])
    return out


def _gpu_sync_columns(texts: list[Raw], interns: Interns) -> Arrays:
    del interns
    rows = decode_args(_gpu_sync, ev.GpuSyncArgs, texts)
    return {name: _ints(rows, name) for name in ev.GpuSyncArgs.__struct_fields__}


def _memory_columns(texts: list[Raw], interns: Interns) -> Arrays:
    del interns
    rows = decode_args(_memory, ev.MemoryArgs, texts)
    out: Arrays = {
        name: _ints(rows, name)
        for name in ("reserved_bytes", "allocated_bytes", "size_bytes", "device_id", "device_type")
    }
    addresses = [row.address for row in rows]
    out["no_address"] = np.array([not 0 <= a < 2**64 for a in addresses], dtype=np.bool_)
    out["address"] = np.array([a if 0 <= a < 2**64 else 0 for a in addresses], dtype=np.uint64)
    return out


def _name_columns(texts: list[Raw], interns: Interns) -> Arrays:
    rows = decode_args(_names, ev.NameArgs, texts)
    return {"value": _codes([interns.texts[row.name.encode("utf-8", "replace")] for row in rows])}


def _nothing(texts: list[Raw], interns: Interns) -> Arrays:
    del texts, interns
    return {}


BUILDERS: dict[Group, Builder] = {
    "op": _op_columns, "annotation": _op_columns, "frame": _frame_columns, "runtime": _call_columns,
    "driver": _call_columns, "kernel": _activity_columns, "memcpy": _activity_columns, "memset": _activity_columns,
    "gpu_sync": _gpu_sync_columns, "gpu_annotation": _nothing, "memory": _memory_columns, "overhead": _nothing,
    "marker": _nothing, "name": _name_columns,
}  # fmt: skip
"""A builder for every group that becomes rows; groups without one are only counted."""

TEXT_COLUMNS = frozenset(("concrete_inputs", "input_types", "input_strides", "input_dims", "extra")).union(
    ("call_from", "copy_kind", "other_name", "value")
)
"""Columns that hold codes of `Interns.texts`."""
