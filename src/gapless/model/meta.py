"""What does the file say about itself and the machine it was recorded on?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """One entry of `deviceProperties`; None where the file does not say."""

    id: int
    name: str
    total_memory_bytes: int | None = None
    compute_major: int | None = None
    compute_minor: int | None = None
    num_sms: int | None = None
    warp_size: int | None = None
    max_threads_per_sm: int | None = None
    max_threads_per_block: int | None = None
    registers_per_sm: int | None = None
    shared_bytes_per_sm: int | None = None
    shared_bytes_per_block_optin: int | None = None


@dataclass(frozen=True, slots=True)
class TraceMeta:
    """Facts about one trace file.

    `origin_ns` is the absolute time (ns since the Unix epoch, as far as the file says) of time zero in the tables.
    `flags` are the recorder's switches that were on: with_stack, record_shapes, profile_memory, with_modules, with_flops.
    `size_by_category` maps a category to (events, bytes of JSON text), measured or sampled while reading.
    `recorder` is the content of the top-level key `gapless` that our own recorder writes, or None.
    """

    path: str
    size_bytes: int
    sha256: str
    format: str
    events: int
    origin_ns: int
    schema_version: int | None = None
    devices: tuple[DeviceProperties, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    distributed: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    host_name: str | None = None
    trace_id: str | None = None
    integer_us: bool = False
    truncated: bool = False
    size_by_category: dict[str, tuple[int, int]] = field(default_factory=dict)
    log_lines: tuple[str, ...] = ()
    recorder: dict[str, Any] | None = None
    other_keys: tuple[str, ...] = ()
