"""How does one event of the JSON look to the decoder? One struct for all, one for the `args` of each group.

`args` stays raw text at first: it is decoded in bulk with the struct of its group, so that keys nobody asked for cost
next to nothing and an odd value in one group does not hurt another. Missing integers are `MISSING`, never zero.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Raw, Struct, field

MISSING = -(2**63)
"""Marks an integer that the file does not have."""

NO_ARGS = Raw(b"{}")
NO_TEXT = Raw(b"")


class Event(Struct, gc=False):
    """Any event; `ts` and `dur` in microseconds, NaN where missing."""

    ph: str = "?"
    cat: str = ""
    name: str = ""
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: float = float("nan")
    dur: float = float("nan")
    args: Raw = NO_ARGS


class OpArgs(Struct, gc=False):
    """`args` of operators and annotations."""

    external_id: int = field(name="External id", default=MISSING)
    seq: int = field(name="Sequence number", default=-1)
    fwd_thread: int = field(name="Fwd thread id", default=-1)
    concrete_inputs: Raw = field(name="Concrete Inputs", default=NO_TEXT)
    input_types: Raw = field(name="Input type", default=NO_TEXT)
    input_strides: Raw = field(name="Input Strides", default=NO_TEXT)
    input_dims: Raw = field(name="Input Dims", default=NO_TEXT)
    finished: bool = field(name="finished", default=True)
    external_id_old: int = field(name="external id", default=MISSING)
    input_dims_old: Raw = field(name="Input dims", default=NO_TEXT)
    collective: Raw = field(name="Collective name", default=NO_TEXT)
    kernel_hash: Raw = field(name="kernel_hash", default=NO_TEXT)


class CollectiveArgs(Struct, gc=False):
    """What `record_param_comms` says about its collective."""

    collective: str = field(name="Collective name", default="")
    dtype: str = ""
    in_elements: int = field(name="In msg nelems", default=MISSING)
    out_elements: int = field(name="Out msg nelems", default=MISSING)
    group_size: int = field(name="Group size", default=MISSING)
    group_name: str | None = field(name="Process Group Name", default=None)
    group_ranks: str | None = field(name="Process Group Ranks", default=None)
    is_async: int | bool | None = field(name="Is asynchronized op", default=None)


class TritonArgs(Struct, gc=False):
    """What a Triton launch op says about its kernel."""

    kernel_file: str | None = None
    kernel_hash: str | None = None
    grid: str | None = None
    num_gb: float | None = field(name="kernel_num_gb", default=None)
    flop: float | None = field(name="kernel_flop", default=None)


class FrameArgs(Struct, gc=False):
    """`args` of Python frames."""

    python_id: int = field(name="Python id", default=-1)
    parent_id: int | None = field(name="Python parent id", default=None)
    call_from: str | None = field(name="CallFrom", default=None)


class CallArgs(Struct, gc=False):
    """`args` of runtime and driver calls."""

    external_id: int = field(name="External id", default=MISSING)
    correlation: int = field(name="correlation", default=-1)
    external_id_old: int = field(name="external id", default=MISSING)
    bytes: int | str | None = None
    size: int | str | None = None
    kind: int | str | None = None


class ActivityArgs(Struct, gc=False):
    """`args` of kernels, copies and memsets."""

    external_id: int = field(name="External id", default=MISSING)
    device: int = MISSING
    stream: int = MISSING
    correlation: int = -1
    registers: int = field(name="registers per thread", default=MISSING)
    shared_bytes: int = field(name="shared memory", default=MISSING)
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    occupancy_pct: float = field(name="est. achieved occupancy %", default=float("nan"))
    size_bytes: int = field(name="bytes", default=MISSING)
    graph_id: int = field(name="graph id", default=MISSING)
    graph_node: int = field(name="graph node id", default=MISSING)
    external_id_old: int = field(name="external id", default=MISSING)
    to_device: int = field(name="toDevice", default=MISSING)
    from_device: int = field(name="fromDevice", default=MISSING)
    copy_kind: str | None = field(name="copy kind", default=None)
    src_kind: str | None = field(name="src kind", default=None)
    dst_kind: str | None = field(name="dst kind", default=None)
    memory_kind: str | None = field(name="memory kind", default=None)


class GpuSyncArgs(Struct, gc=False):
    """`args` of `cuda_sync` records."""

    device: int = MISSING
    stream: int = MISSING
    correlation: int = -1
    wait_on_stream: int = MISSING
    wait_on_record_correlation: int = field(name="wait_on_cuda_event_record_corr_id", default=MISSING)


class MemoryArgs(Struct, gc=False):
    """`args` of `[memory]` and `[OutOfMemory]` instants."""

    reserved_bytes: int = field(name="Total Reserved", default=MISSING)
    allocated_bytes: int = field(name="Total Allocated", default=MISSING)
    size_bytes: int = field(name="Bytes", default=0)
    device_id: int = field(name="Device Id", default=-1)
    device_type: int = field(name="Device Type", default=-1)
    address: int = field(name="Addr", default=MISSING)


class NameArgs(Struct, gc=False):
    """`args` of metadata events (`thread_name` and the like)."""

    name: str = ""


S = TypeVar("S", bound=Struct)

events_decoder = msgspec.json.Decoder(list[Event])
event_decoder = msgspec.json.Decoder(Event)
