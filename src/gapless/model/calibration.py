"""What does the profiler itself cost the host on one machine, per unit of recorded work?

`gapless calibrate` measures it, the recorder writes it into the trace (`gapless.calibration`), the replay subtracts it.
The defaults were measured on one H200 (torch 2.11, CUDA 13.0) and serve where nothing better is known.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

SCHEMA = "gapless.calibration/1"

Loops = Mapping[str, Mapping[str, float]]
"""Loop name -> profiler configuration -> median host time of one iteration in ns.

Configurations: none, cpu, both, shapes, stack, memory ('both' is CPU and GPU activity; the last three add one switch
to it). On a machine without a GPU 'both' is CPU activity alone.
"""

TENSORS_PER_LIST = 64

COUNTS = {
    "view": 200,
    "launch": 200,
    "tensor_list": 20 * TENSORS_PER_LIST,
    "linear": 50,
    "frame": 1000,
    "item": 50,
    "sync": 50,
    "graph_node": 5 * 200,
    "backward": 10,
}
"""Units of work in one iteration of each loop."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Host time that recording adds, in ns per unit; `measured` is False for the defaults.

    Each unit is the extra cost against the same code without the profiler. Costs of switches (shapes, stack, memory)
    come on top of the plain cost. `item_ns`, `linear_ns` and `backward_ns` are whole idioms, for cross-checks: their
    ops and calls are already counted by `op_ns` and `call_ns`.
    """

    machine: str = "NVIDIA H200"
    torch: str = "2.11.0+cu130"
    python: str = "3.12"
    measured: bool = False
    op_ns: float = 2_000.0
    """One recorded op (a leaf without a GPU launch), CPU and GPU activity on."""
    op_cpu_only_ns: float = 850.0
    """The same with CPU activity alone."""
    call_ns: float = 3_600.0
    """One call that launches GPU work, beyond its op."""
    op_shapes_ns: float = 900.0
    """Per op, with record_shapes."""
    tensor_shape_ns: float = 70.0
    """Per tensor in an argument list, with record_shapes."""
    op_stack_ns: float = 700.0
    """Per op, with with_stack."""
    frame_ns: float = 330.0
    """Per Python call, with with_stack."""
    op_memory_ns: float = 0.0
    """Per op without an allocation, with profile_memory."""
    sync_ns: float = 3_100.0
    """One device synchronisation."""
    sync_stack_ns: float = 14_400.0
    """Per device synchronisation, with with_stack: the frames of the Python wrapper round it included."""
    graph_node_ns: float = 760.0
    """Per node of a replayed CUDA graph, inside the launching call."""
    item_ns: float = 12_800.0
    """One `.item()` of an indexed element, GPU idle."""
    linear_ns: float = 20_400.0
    """One `nn.Linear` forward under no_grad."""
    backward_ns: float = 20_100.0
    """One `nn.Linear`, forward and backward."""
    spread: float = 0.3
    """How far the host's speed scattered: interquartile range of a loop's times over their median; the median loop."""
    loops: dict[str, dict[str, float]] = field(default_factory=dict)
    """What was measured; empty for the defaults."""

    def to_json(self) -> dict[str, object]:
        """The stored form: the fields by name, and the schema."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Calibration:
        """Read the stored form; unknown keys are ignored, absent or ill-typed ones keep their default."""
        known: dict[str, object] = {}
        for entry in fields(cls):
            value = data.get(entry.name)
            default = entry.default
            if isinstance(default, bool):
                if isinstance(value, bool):
                    known[entry.name] = value
            elif isinstance(default, float):
                if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12:
                    known[entry.name] = float(value)
            elif isinstance(default, str):
                if isinstance(value, str):
                    known[entry.name] = value
            elif isinstance(value, dict):
                known[entry.name] = {
                    str(loop): {str(k): float(v) for k, v in row.items() if isinstance(v, (int, float))}
                    for loop, row in value.items()
                    if isinstance(row, dict)
                }
        return cls(**known)  # type: ignore[arg-type]


def derive(loops: Loops, *, machine: str, torch: str, python: str, spread: float) -> Calibration:
    """Costs per unit from measured loops; a unit whose loop is absent keeps its default.

    Differences below zero are noise and become 0.
    """

    def unit(loop: str, high: str, low: str) -> float | None:
        row = loops.get(loop, {})
        if high not in row or low not in row:
            return None
        return max(0.0, (row[high] - row[low]) / COUNTS[loop])

    found: dict[str, float | None] = {
        "op_ns": unit("view", "both", "none"),
        "op_cpu_only_ns": unit("view", "cpu", "none"),
        "op_shapes_ns": unit("view", "shapes", "both"),
        "op_stack_ns": unit("view", "stack", "both"),
        "op_memory_ns": unit("view", "memory", "both"),
        "frame_ns": unit("frame", "stack", "both"),
        "sync_ns": unit("sync", "both", "none"),
        "sync_stack_ns": unit("sync", "stack", "both"),
        "graph_node_ns": unit("graph_node", "both", "none"),
        "item_ns": unit("item", "both", "none"),
        "linear_ns": unit("linear", "both", "none"),
        "backward_ns": unit("backward", "both", "none"),
    }
    tensors, op_shapes = unit("tensor_list", "shapes", "both"), found["op_shapes_ns"]
    if tensors is not None and op_shapes is not None:
        found["tensor_shape_ns"] = max(0.0, tensors - op_shapes / TENSORS_PER_LIST)
    launch, op = unit("launch", "both", "none"), found["op_ns"]
    if launch is not None and op is not None:
        found["call_ns"] = max(0.0, launch - op)
    return Calibration(
        machine=machine,
        torch=torch,
        python=python,
        measured=True,
        spread=spread,
        loops={name: dict(row) for name, row in loops.items()},
        **{name: value for name, value in found.items() if value is not None},
    )


def file_name(machine: str, torch: str) -> str:
    """Name of the stored file for a machine and a torch version: letters, digits, dot and dash."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{machine}-torch{torch}").strip("-") + ".json"


def folder(environ: Mapping[str, str]) -> Path:
    """Where calibrations are kept: GAPLESS_CACHE_DIR, else XDG_CACHE_HOME/gapless, else ~/.cache/gapless."""
    if environ.get("GAPLESS_CACHE_DIR"):
        root = Path(environ["GAPLESS_CACHE_DIR"])
    elif environ.get("XDG_CACHE_HOME"):
        root = Path(environ["XDG_CACHE_HOME"]) / "gapless"
    else:
        root = Path.home() / ".cache" / "gapless"
    return root / "calibration"


def load(where: Path, machine: str, torch: str) -> Calibration | None:
    """The stored calibration of this machine and torch version, or None where there is none that can be read."""
    return read(where / file_name(machine, torch))


def stored_for(where: Path, machine: str, torch: str | None = None) -> Calibration | None:
    """The calibration kept for a machine that a trace names: of this torch version, or the newest if it is not known."""
    if torch is not None:
        return load(where, machine, torch)
    prefix = file_name(machine, "").removesuffix(".json")
    kept = [(path.stat().st_mtime, path) for path in where.glob(f"{prefix}*.json")]
    found = read(max(kept)[1]) if kept else None
    return found if found is not None and found.machine == machine else None


def read(path: Path) -> Calibration | None:
    """One stored calibration, or None where the file is none that can be read."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return None
    return Calibration.from_json(data)


def store(where: Path, calibration: Calibration) -> Path:
    """Write it where `load` finds it, atomically, and return the path."""
    where.mkdir(parents=True, exist_ok=True)
    target = where / file_name(calibration.machine, calibration.torch)
    handle, temporary = tempfile.mkstemp(dir=where, prefix=".calibration-")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        json.dump(calibration.to_json(), out, indent=1)
    Path(temporary).replace(target)
    return target
