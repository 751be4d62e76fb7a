"""`info` answers every question with yes or no, and a no says what to record."""

from __future__ import annotations

from gapless.model.meta import DeviceProperties, TraceMeta
from gapless.render import info, json_, text

from . import factories, snapshots

META = TraceMeta(
    path="traces/a.json.gz",
    size_bytes=1_234_567,
    sha256="00",
    format="kineto json",
    events=4321,
    origin_ns=0,
    devices=(DeviceProperties(0, "NVIDIA H200"),),
    flags=("record_shapes",),
    versions={"torch": "2.11.0"},
    size_by_category={"cpu_op": (3000, 900_000), "kernel": (1000, 300_000), "python_function": (0, 0)},
)
ROWS = {"ops": 3000, "calls": 1200, "activities": 1000, "frames": 0, "steps": 3}


def test_answers_follow_from_rows_and_flags() -> None:
    found = {a.question: a for a in info.answers(META, ROWS)}
    assert found["where the GPU's time went, and what ran on it"].yes
    assert found["which shapes an operator had, GB/s and TFLOP/s"].yes
    line = found["which line of your program is to blame"]
    assert (line.yes, line.missing) == (False, "no stacks were recorded")
    assert "with_stack" in line.how


def test_without_gpu_records_nothing_is_promised() -> None:
    found = info.answers(META, ROWS | {"activities": 0})
    assert not any(a.yes for a in found if "GPU" in a.question)


def test_snapshot() -> None:
    issues = [
        {
            "code": "invalid-escape",
            "severity": "repaired",
            "count": 2,
            "detail": "names were repaired",
            "example": "C:\\x",
        }
    ]
    aside = [{"category": "kernel", "name": "k", "start_text": "1.5", "dur_text": "-3", "reason": "negative-duration"}]
    snapshots.check("info.80.txt", text.draw(info.build_info(META, ROWS, issues, aside), width=80))


def test_hostile_names_do_nothing() -> None:
    bad = factories.HOSTILE
    meta = TraceMeta(bad, 1, bad, bad, 1, 0, devices=(DeviceProperties(0, bad),), flags=(bad,), versions={bad: bad},
                     size_by_category={bad: (1, 1)}, truncated=True, integer_us=True)  # fmt: skip
    issues = [{"code": bad, "severity": bad, "count": 1, "detail": bad, "example": bad}]
    aside = [{"category": bad, "name": bad, "start_text": bad, "dur_text": bad, "reason": bad}]
    shown = text.draw(info.build_info(meta, {bad: 1}, issues, aside))
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert len(shown) < 20_000
    assert json_.dumps(info.to_dict(meta, {bad: 1}, issues, aside)).isascii()
