"""# graph-break: torch.compile cuts the function into pieces

## What it does
Finds compiled regions that run inside one another, which is how Dynamo continues after a graph break, and, with stacks,
functions under `torch.compile` that ran without any compiled region because Dynamo gave up.

## Why it costs
Each piece has its own guards, prologue and launches, Python runs in between, and nothing is fused across the cut. A
break in a loop makes Dynamo skip the whole frame, which then runs eagerly.

## How the gain is computed
Each broken function becomes one region: one compiled call of 35 us on the host. Its element-wise kernels are fused, to a
quarter of their time; other kernels stay. Cautious: the kernels stay as they are. Waits inside (an `.item()` that broke
the graph) go.

## When it may be wrong
A break round code that must run in Python (I/O, third-party calls) cannot go; move it out of the compiled function.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.host import FRAME
from gapless.replay.program import NONE, Program
from gapless.replay.whatif import capture, inside_items, set_activity_ns, unblock
from gapless.rules.context import Context
from gapless.rules.outcome import Clean, Found, Outcome, Unknown
from gapless.tables.coding import matches
from gapless.tables.intervals import Int

CODE = KIND = "graph-break"
COMPILED_CALL_NS = 35_000.0
"""Host time of one call of a compiled region: guards, prologue, one launch (H200 host, torch 2.11, unprofiled)."""
FUSED_SHARE = 0.25
"""What is left of a chain's element-wise GPU time once it is one kernel (measured chains: 0.18 and 0.27)."""
REGION = "Torch-Compiled Region"

FIX = """\
# See where and why it breaks:
#   TORCH_LOGS=graph_breaks python train.py
explanation = torch._dynamo.explain(model)(x)
print(explanation.break_reasons)

# The usual reasons: .item() / .tolist() / bool(tensor) (keep the value on the GPU, use torch.where), print and logging
# (move them out of the compiled function), numpy calls, and calls marked torch._dynamo.disable or graph_break().
# Make breaks an error once they are gone:
model = torch.compile(model, fullgraph=True)
"""


def check(c: Context) -> Outcome:
    """Are compiled functions cut?"""
    forest = c.s.links.forest
    regions = np.zeros(forest.source.size, dtype=bool)
    regions[forest.of_op] = matches(c.s.raw.ops["name"], lambda n: n.startswith(REGION))
    rows = np.flatnonzero(regions & c.counted_rows)
    if rows.size:
        return _nested(c, rows)
    if c.s.raw.frames.height == 0:
        return Unknown(
            "no compiled region in the trace: either nothing is compiled, or Dynamo gave up, which only stacks show",
            "record with with_stack=True (gapless run --stacks), or run with TORCH_LOGS=graph_breaks",
        )
    return _gave_up(c)


def _nested(c: Context, rows: Int) -> Outcome:
    outer = c.outermost(rows)
    if outer.size == rows.size:
        return Clean()
    forest = c.s.links.forest
    inner = np.setdiff1d(rows, outer)
    base = c.in_base(outer)
    inner_base = c.in_base(inner)
    broken = np.array(
        [r for r in base.tolist() if ((forest.start[inner_base] > forest.start[r]) & (forest.start[inner_base] < forest.end[r])).any()],
        dtype=np.int64,
    )  # fmt: skip
    if broken.size == 0:
        return Clean()
    breaks = inner.size / c.step_count
    return _found(
        c, broken, f"torch.compile's graph breaks {breaks:.0f} time{'s' if breaks > 1.5 else ''} a step", inner,
        [f"{rows.size / c.step_count:.0f} compiled regions a step, {breaks:.0f} of them continue another after a break",
         *_between(c, broken)],
    )  # fmt: skip


def _between(c: Context, broken: Int) -> list[str]:
    forest = c.s.links.forest
    waits = 0
    for row in broken.tolist():
        inside = inside_items(c.program, forest.start[[row]], forest.end[[row]])
        waits += int((c.program.item_wait[inside] != NONE).sum())
    return [f"{waits} wait{'s' if waits != 1 else ''} for the GPU between the pieces"] if waits else []


def _gave_up(c: Context) -> Outcome:
    forest = c.s.links.forest
    wrapper, cause = np.zeros(forest.source.size, dtype=bool), np.zeros(forest.source.size, dtype=bool)
    wrapper[forest.of_frame] = matches(
        c.s.raw.frames["name"], lambda n: n.startswith("torch/_dynamo/eval_frame.py") and "compile_wrapper" in n
    )
    cause[forest.of_frame] = matches(
        c.s.raw.frames["name"], lambda n: n.startswith("torch/_dynamo/") and n.endswith(": graph_break")
    )
    rows = c.outermost(np.flatnonzero(wrapper & (forest.source == FRAME) & c.counted_rows))
    if rows.size == 0:
        return Clean()
    base = c.in_base(rows)
    launching = [r for r in base.tolist() if inside_items(c.program, forest.start[[r]], forest.end[[r]]).any()]
    if not launching:
        return Clean()
    explicit = np.flatnonzero(cause & c.counted_rows)
    text = [
        f"{rows.size / c.step_count:.0f} calls a step go through torch.compile, but no compiled region ran: Dynamo gave up"
    ]
    if explicit.size:
        text.append(f"torch._dynamo.graph_break() is called {explicit.size / c.step_count:.0f} times a step")
    return _found(
        c, np.array(launching, dtype=np.int64), "torch.compile gave up: the function runs eagerly",
        explicit if explicit.size else rows, text,
    )  # fmt: skip


def _found(c: Context, broken: Int, title: str, sites: Int, evidence: list[str]) -> Found:
    forest = c.s.links.forest
    spans = list(zip(forest.start[broken].tolist(), forest.end[broken].tolist(), strict=True))
    families = np.array(c.families(c.program) or [""])
    starts, ends = forest.start[broken], forest.end[broken]

    def merged(program: Program, fused: float) -> Program:
        items = inside_items(program, starts, ends)
        mine = items[program.act_item] if program.act_item.size else np.zeros(0, dtype=bool)
        own = program.act_row >= 0
        light = (
            np.isin(families, ("pointwise", "triton", "reduction", "copy"))
            if own.all() and families.size == own.size
            else own
        )
        edited = set_activity_ns(unblock(program, items), mine & light, program.act_ns * fused)
        for start, end in spans:
            edited = capture(edited, start, end, host_ns=COMPILED_CALL_NS, node_ns=0.0)
        return edited

    return Found(
        title,
        c.sites(sites),
        lambda program: merged(program, FUSED_SHARE),
        evidence,
        "Code that must run in Python cannot be compiled; it has to move out of the function.",
        FIX,
        cautious=lambda program: merged(program, 1.0),
        assumptions=[
            "one compiled call takes 35 us of host time",
            "element-wise kernels fuse to a quarter of their time",
        ],
    )
