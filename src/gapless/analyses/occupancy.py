"""How full can a kernel make an SM, and what limits it: warps resident at most, of those the SM could hold?

The rules are those of the CUDA occupancy calculator: registers are handed to a warp in units of 256 and to each of the
SM's four partitions separately, shared memory to a block in units of 128 bytes plus 1 KiB reserved by the system
(256 and none before compute capability 8). Low occupancy is a fact about a kernel, not a fault: GEMMs and fused
attention run best with few, fat blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gapless.model.meta import DeviceProperties
from gapless.model.peaks import LaunchLimits, find_limits, find_peaks

_PARTITIONS = 4

Limit = Literal["threads", "registers", "shared-memory", "blocks", "grid"]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps resident on one SM at most, the share of the warps it could hold, and what limits them."""

    blocks: int
    warps: int
    share: float
    limited_by: Limit


@dataclass(frozen=True, slots=True)
class StatedOccupancy:
    """Occupancy in percent and where it comes from: recomputed from the launch, or as the file reports it."""

    percent: float
    source: Literal["recomputed", "reported"]
    limited_by: Limit | None


def limits_of(device: DeviceProperties) -> LaunchLimits | None:
    """The limits of a device in a trace: what the file states, in units that follow from its compute capability.

    None for AMD devices, whose files hold no registers, and for an unknown device.
    """
    if device.warp_size == 64:
        return None
    base = find_limits(device.compute_major, device.compute_minor)
    if base is None:
        peaks = find_peaks(device.name)
        base = peaks.limits if peaks is not None else None
    if base is None or base.warp_size != 32:
        return None
    return LaunchLimits(
        base.warp_size,
        device.max_threads_per_sm or base.max_threads_per_sm,
        base.max_blocks_per_sm,
        device.registers_per_sm or base.registers_per_sm,
        device.shared_bytes_per_sm or base.shared_bytes_per_sm,
        base.register_unit,
        base.shared_unit_bytes,
        base.reserved_shared_bytes_per_block,
    )


def occupancy(
    threads: int,
    registers: int,
    shared_bytes: int,
    limits: LaunchLimits,
    grid_blocks: int | None = None,
    sms: int | None = None,
) -> Occupancy | None:
    """Occupancy of blocks of `threads` threads with `registers` a thread and `shared_bytes` of shared memory a block.

    With the grid's size and the number of SMs, a grid too small to fill the device counts as a limit. None for a
    launch that no device of this kind can run (a record that makes no sense).
    """
    if threads <= 0 or registers < 0 or shared_bytes < 0:
        return None
    warps_per_block = _ceil(threads, limits.warp_size)
    fits: list[tuple[int, Limit]] = [
        (limits.max_warps_per_sm // warps_per_block, "threads"),
        (limits.max_blocks_per_sm, "blocks"),
    ]
    if registers:
        per_warp = _round_up(registers * limits.warp_size, limits.register_unit)
        warps = limits.registers_per_sm // _PARTITIONS // per_warp * _PARTITIONS
        fits.append((warps // warps_per_block, "registers"))
    shared = _round_up(shared_bytes + limits.reserved_shared_bytes_per_block, limits.shared_unit_bytes)
    if shared:
        fits.append((limits.shared_bytes_per_sm // shared, "shared-memory"))
    if grid_blocks is not None and sms:
        fits.append((_ceil(grid_blocks, sms), "grid"))
    blocks, limit = min(fits, key=lambda fit: fit[0])
    if blocks <= 0:
        return None
    warps = blocks * warps_per_block
    return Occupancy(blocks, warps, warps / limits.max_warps_per_sm, limit)


def state_occupancy(
    reported_percent: float | None,
    threads: int | None,
    registers: int | None,
    shared_bytes: int | None,
    limits: LaunchLimits | None,
    grid_blocks: int | None = None,
    sms: int | None = None,
) -> StatedOccupancy | None:
    """What to say about a kernel's occupancy: recomputed where the launch is recorded, else as reported, if not 0.

    Recorders write 0 for launches they do not know how to judge, so a reported 0 is no statement.
    """
    if limits is not None and threads and registers:
        found = occupancy(threads, registers, shared_bytes or 0, limits, grid_blocks, sms)
        if found is not None:
            return StatedOccupancy(100 * found.share, "recomputed", found.limited_by)
    if reported_percent is not None and 0 < reported_percent <= 100:
        return StatedOccupancy(reported_percent, "reported", None)
    return None


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)


def _round_up(value: int, unit: int) -> int:
    return _ceil(value, unit) * unit
