"""Which tables a trace becomes, with every column's type and unit: the single place where they are declared.

Readers fill exactly these columns, the documentation's column pages and `gapless query`'s catalogue are generated from
here. Types: `i64 i32 u32 f32 f64 bool str`, and `enum` for dictionary-encoded text (equal values share one code, so
that work per distinct name is done once). All times are int64 nanoseconds since `TraceMeta.origin_ns`.
A column with `null=True` may be missing in a trace; null then means "not recorded", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DType = Literal["i64", "i32", "u32", "u64", "f32", "f64", "bool", "str", "enum"]

FORMAT_VERSION = 2
"""Version of the stored tables; a cache written with another version is rebuilt."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, type, meaning with unit, and whether it can be null."""

    name: str
    dtype: DType
    doc: str
    null: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its name, the question it answers, and its columns in order."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    def names(self) -> list[str]:
        """Column names in order."""
        return [c.name for c in self.columns]


def _span(what: str) -> tuple[Column, ...]:
    return (
        Column("start_ns", "i64", f"start of the {what}, ns since the trace's origin"),
        Column("dur_ns", "i64", f"duration of the {what}, ns, never negative"),
    )


THREADS = Table(
    "threads",
    "Which host threads appear in the trace?",
    (
        Column("thread", "u32", "row number, the key other tables use"),
        Column("pid", "str", "operating-system process id as written in the file"),
        Column("tid", "str", "thread id as written in the file"),
        Column("name", "str", "thread name (the last one given), '' if none"),
    ),
)

OPS = Table(
    "ops",
    "Which CPU-side operator events and user annotations ran, where and when?",
    (
        *_span("op"),
        Column("thread", "u32", "row of `threads`"),
        Column("name", "enum", "operator or annotation name, overload suffix kept"),
        Column("kind", "enum", "'op' or 'annotation'"),
        Column("external_id", "i64", "`External id`, unique per op in a file", null=True),
        Column("seq", "i64", "autograd sequence number, -1 if none"),
        Column("fwd_thread", "i64", "logical forward thread of a backward op, 0 for a forward op, -1 if none"),
        Column("input_dims", "enum", "`Input Dims` as JSON text", null=True),
        Column("input_types", "enum", "`Input type` as JSON text", null=True),
        Column("input_strides", "enum", "`Input Strides` as JSON text", null=True),
        Column("concrete_inputs", "enum", "`Concrete Inputs` as JSON text", null=True),
        Column("finished", "bool", "False where the recorder closed an op that had not ended"),
    ),
)

FRAMES = Table(
    "frames",
    "Which Python frames and nn.Module calls were on the stack (`with_stack`)?",
    (
        *_span("frame"),
        Column("thread", "u32", "row of `threads`"),
        Column("name", "enum", "`file.py(12): func`, `nn.Module: Linear_0` or `<built-in ...>`, addresses removed"),
        Column("python_id", "i64", "`Python id`, -1 if none"),
        Column("parent_id", "i64", "`Python parent id`, -1 if none"),
        Column("call_from", "enum", "`CallFrom` (file.py:line of the call), torch 2.14 and later", null=True),
    ),
)

CALLS = Table(
    "calls",
    "Which CUDA, HIP or other runtime and driver calls did the host make?",
    (
        *_span("call"),
        Column("thread", "u32", "row of `threads`"),
        Column("name", "enum", "API name, e.g. cudaLaunchKernel"),
        Column("api", "enum", "'runtime' or 'driver'"),
        Column("correlation", "i64", "correlation id shared with GPU work, -1 if none (0 is never linked)"),
        Column("external_id", "i64", "`External id` as written; wrong in torch 1.11 to 2.2", null=True),
        Column("size_bytes", "i64", "bytes of a copy or allocation where the API record carries them", null=True),
        Column("copy_kind", "enum", "direction where the API record carries it (HIP): HtoD, DtoH, DtoD", null=True),
    ),
)

ACTIVITIES = Table(
    "activities",
    "Which kernels, copies and memsets ran on a GPU?",
    (
        *_span("activity"),
        Column("device", "i32", "device index as written in the file"),
        Column("stream", "i64", "stream (or queue) id"),
        Column("kind", "enum", "'kernel', 'memcpy' or 'memset'"),
        Column("name", "enum", "kernel name, or e.g. `Memcpy HtoD (Pinned -> Device)`"),
        Column("correlation", "i64", "correlation id shared with the launching call, -1 if none"),
        Column("external_id", "i64", "`External id` as written", null=True),
        Column("size_bytes", "i64", "bytes moved or set", null=True),
        Column("grid_x", "i64", "grid size", null=True),
        Column("grid_y", "i64", "grid size", null=True),
        Column("grid_z", "i64", "grid size", null=True),
        Column("block_x", "i64", "block size in threads", null=True),
        Column("block_y", "i64", "block size in threads", null=True),
        Column("block_z", "i64", "block size in threads", null=True),
        Column("registers", "i64", "registers per thread", null=True),
        Column("shared_bytes", "i64", "shared memory per block, static and dynamic", null=True),
        Column(
            "occupancy_pct", "f64", "`est. achieved occupancy %` as reported; 0 often means not measured", null=True
        ),
        Column("graph_id", "i64", "CUDA graph id, 0 or null outside graphs", null=True),
        Column("graph_node", "i64", "CUDA graph node id", null=True),
        Column("peer_device", "i32", "destination device of a peer copy", null=True),
    ),
)

GPU_SYNCS = Table(
    "gpu_syncs",
    "Which `cuda_sync` records does the file hold (only with enable_cuda_sync_events)? Never GPU work.",
    (
        *_span("wait"),
        Column("device", "i32", "device index"),
        Column("stream", "i64", "stream, -1 for context and event syncs"),
        Column("name", "enum", "Stream Sync, Context Sync, Event Sync, Stream Wait Event"),
        Column("correlation", "i64", "correlation id of the call, -1 if none"),
        Column("wait_on_stream", "i64", "stream of the awaited event", null=True),
        Column(
            "wait_on_record_correlation", "i64", "correlation of the awaited cudaEventRecord, -1 unknown", null=True
        ),
    ),
)

GPU_ANNOTATIONS = Table(
    "gpu_annotations",
    "Which user annotations did the recorder mirror on GPU lanes? Not the extent of the annotated work.",
    (
        *_span("annotation"),
        Column("device", "i32", "device index"),
        Column("stream", "i64", "stream id"),
        Column("name", "enum", "annotation name"),
    ),
)

MEMORY = Table(
    "memory",
    "Which allocations and frees were recorded (`profile_memory`)?",
    (
        Column("time_ns", "i64", "time of the event, ns since the trace's origin"),
        Column("thread", "u32", "row of `threads`"),
        Column("device_type", "i64", "c10 device type: 0 CPU, 1 CUDA or HIP"),
        Column("device_id", "i64", "device index, -1 for the CPU"),
        Column("address", "u64", "address", null=True),
        Column("size_bytes", "i64", "bytes allocated, negative for a free"),
        Column("allocated_bytes", "i64", "total allocated after the event", null=True),
        Column("reserved_bytes", "i64", "total reserved after the event", null=True),
        Column("name", "enum", "`[memory]` or `[OutOfMemory]`"),
    ),
)

OVERHEADS = Table(
    "overheads",
    "Which overhead rows did the recorder write (buffer requests, lazy loading, full queue)?",
    (*_span("overhead"), Column("name", "enum", "kind of overhead, e.g. Activity Buffer Request")),
)

MARKERS = Table(
    "markers",
    "Which spans and instants describe the recording itself?",
    (*_span("marker"), Column("name", "enum", "e.g. `PyTorch Profiler (0)`, `Record Window End`")),
)

COLLECTIVES = Table(
    "collectives",
    "What does each `record_param_comms` op say about its collective?",
    (
        Column("op", "u32", "row of `ops`"),
        Column("collective", "enum", "e.g. allreduce, _allgather_base"),
        Column("dtype", "enum", "element type, e.g. BFloat16"),
        Column("in_elements", "i64", "elements sent", null=True),
        Column("out_elements", "i64", "elements received", null=True),
        Column("group_size", "i64", "ranks in the process group", null=True),
        Column("group_name", "enum", "process group name", null=True),
        Column("group_ranks", "enum", "ranks as text, possibly cut", null=True),
        Column("is_async", "bool", "asynchronous op", null=True),
    ),
)

TRITON = Table(
    "triton",
    "What does each Triton launch op say about its kernel?",
    (
        Column("op", "u32", "row of `ops`"),
        Column("kernel_file", "enum", "generated source file", null=True),
        Column("kernel_hash", "enum", "hash of the generated kernel", null=True),
        Column("grid", "enum", "launch grid as text", null=True),
        Column("num_gb", "f64", "GB the compiler says the kernel moves", null=True),
        Column("flop", "f64", "floating-point operations the compiler says the kernel does", null=True),
    ),
)

SET_ASIDE = Table(
    "set_aside",
    "Which events could not be counted, and why? They change no total.",
    (
        Column("category", "enum", "category as written"),
        Column("name", "enum", "event name"),
        Column("start_text", "str", "`ts` as written"),
        Column("dur_text", "str", "`dur` as written"),
        Column("reason", "enum", "negative-duration, absurd-duration, overruns-window, bad-time, no-time"),
    ),
)

ISSUES = Table(
    "issues",
    "What was odd, repaired or lost while reading, how often, and what does it do to the numbers?",
    (
        Column("code", "str", "stable name of the defect, e.g. invalid-escape"),
        Column("severity", "str", "'note', 'repaired', 'loss' or 'error'"),
        Column("count", "i64", "how many events or bytes it concerns"),
        Column("detail", "str", "one sentence: what it is and what it does to the numbers"),
        Column("example", "str", "one short example from the file"),
    ),
)

TABLES: tuple[Table, ...] = (
    THREADS, OPS, FRAMES, CALLS, ACTIVITIES, GPU_SYNCS, GPU_ANNOTATIONS, MEMORY, OVERHEADS, MARKERS, COLLECTIVES,
    TRITON, SET_ASIDE, ISSUES,
)  # fmt: skip
