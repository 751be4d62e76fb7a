"""# graph-break: torch.compile cuts the function into pieces

## What it does
Finds compiled regions that run inside one another, which is how Dynamo continues after a graph break; three and more
regions with a wait for the GPU (an `.item()`) between one and the next and little else; and, with stacks, functions under
`torch.compile` that ran without any compiled region because Dynamo gave up. The stacks may lie in a window of their own
beside the trace (`x.stack.json.gz` beside `x.json.gz`).

## Why it costs
Each piece has its own guards, prologue and launches, Python runs in between, and nothing is fused across the cut. A
break in a loop makes Dynamo skip the whole frame, which then runs eagerly.

## How the gain is computed
Each broken function becomes one region: one call's cost on the host stays. Operators that are not fused (matrix products)
keep their host time and kernels; element-wise neighbours on either side of a cut become one kernel. Waits inside (an
`.item()` that broke the graph) go. Cautious: no kernels are fused.

## When it may be wrong
A break round code that must run in Python (I/O, third-party calls) cannot go; move it out of the compiled function.
Regions with waits between them may be calls of one function from a loop that has to look at each result.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.borrowed import Borrowed
from gapless.analyses.host import OP
from gapless.analyses.study import Study
from gapless.replay.program import NONE
from gapless.replay.whatif import inside_items
from gapless.rules._compiled import (
    QUICK_CALL,
    Call,
    Span,
    apart,
    as_one_call,
    calls_of,
    region_mask,
    stretches,
    waits_between,
)
from gapless.rules.context import Context, Mask
from gapless.rules.outcome import Clean, Found, Outcome, SiteCost, Unknown
from gapless.tables.coding import matches
from gapless.tables.intervals import Int, as_ns
from gapless.tables.nesting import topmost

CODE = KIND = "graph-break"
LEAST_CUT = 3
"""Two regions with a wait between them are usual in healthy steps: a compiled model, `loss.item()`, a compiled optimizer."""
FEW_OPS = 4
"""Ops between two pieces of one function, at most: what computes the value that is read, and the read."""

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
    rows = np.flatnonzero(region_mask(c.s) & c.counted_rows)
    for look in (_nested, _cut_by_waits) if rows.size else ():
        found = look(c, rows)
        if isinstance(found, Found):
            return found
    if c.s.raw.frames.height:
        return _gave_up(c)
    if c.stacks is not None:
        return _gave_up_beside(c, c.stacks)
    if rows.size:
        return Clean()
    return Unknown(
        "no compiled region in the trace: either nothing is compiled, or Dynamo gave up, which only stacks show",
        "record with with_stack=True (gapless run --stacks), or run with TORCH_LOGS=graph_breaks",
    )


def _nested(c: Context, rows: Int) -> Outcome:
    outer = c.outermost(rows)
    if outer.size == rows.size:
        return Clean()
    forest = c.s.links.forest
    inner = np.setdiff1d(rows, outer)
    at = forest.start[c.in_base(inner)]
    broken = [call for call in calls_of(c, outer) if ((at > forest.start[call.row]) & (at < call.end)).any()]
    if not broken:
        return Clean()
    breaks = inner.size / c.step_count
    return _found(
        c, [[(call.start, call.end)] for call in broken] + _backward(c),
        f"torch.compile's graph breaks {breaks:.0f} time{'s' if breaks > 1.5 else ''} a step", c.sites(inner),
        [f"{rows.size / c.step_count:.0f} compiled regions a step, {breaks:.0f} of them continue another after a break",
         *_waits(c, broken)],
    )  # fmt: skip


def _backward(c: Context) -> list[Span]:
    """The backward pieces of cut functions: one call, once the forward is one."""
    forest = c.s.links.forest
    rows = c.in_base(c.outermost(c.op_rows("autograd::engine::evaluate_function: CompiledFunctionBackward")))
    spans = list(zip(forest.start[rows].tolist(), forest.end[rows].tolist(), strict=True))
    return [spans] if len(spans) > 1 else []


def _waits(c: Context, broken: list[Call]) -> list[str]:
    inside = inside_items(c.program, as_ns([call.start for call in broken]), as_ns([call.end for call in broken]))
    waits = int((c.program.item_wait[inside] != NONE).sum())
    return [f"{waits} wait{'s' if waits != 1 else ''} for the GPU between the pieces"] if waits else []


def _cut_by_waits(c: Context, rows: Int) -> Outcome:
    """Are regions separated by little more than a wait? So runs a frame that Dynamo skipped, or had to leave."""
    forest = c.s.links.forest
    calls = calls_of(c, c.outermost(rows))
    if len(calls) < LEAST_CUT:
        return Clean()
    split, waits = apart(c), waits_between(c)
    launching = forest.start[c.in_base(c.outermost(np.flatnonzero((forest.source == OP) & c.counted_rows)))]

    def follows(one: Call, two: Call) -> bool:
        between = int(((launching >= one.end) & (launching < two.start)).sum())
        return not split(one, two) and waits(one, two) > 0 and between <= FEW_OPS

    groups = [group for group in stretches(calls, follows) if len(group) >= LEAST_CUT]
    if not groups:
        return Clean()
    count, cuts = sum(len(group) for group in groups), sum(len(group) - 1 for group in groups)
    return _found(
        c, [[(group[0].start, group[-1].end)] for group in groups],
        f"{count} compiled regions a step are cut apart by {cuts} waits for the GPU",
        c.sites(as_ns([call.row for group in groups for call in group])),
        [f"{count} compiled regions a step, with a wait and at most {FEW_OPS} operators between one and the next"],
    )  # fmt: skip


def _frames(s: Study) -> tuple[Mask, Mask]:
    """Which forest rows are the outermost frames that enter a compiled function without any compiled region inside, and
    which frames call `graph_break()`?"""
    forest = s.links.forest
    wrapper, cause = np.zeros(forest.source.size, dtype=bool), np.zeros(forest.source.size, dtype=bool)
    wrapper[forest.of_frame] = matches(
        s.raw.frames["name"], lambda n: n.startswith("torch/_dynamo/eval_frame.py") and "compile_wrapper" in n
    )
    cause[forest.of_frame] = matches(
        s.raw.frames["name"], lambda n: n.startswith("torch/_dynamo/") and n.endswith(": graph_break")
    )
    call = topmost(wrapper, forest.parent)
    bare = np.zeros(wrapper.size, dtype=bool)
    bare[call[call >= 0]] = True
    compiled = call[region_mask(s)]
    bare[compiled[compiled >= 0]] = False
    return bare, cause


def _gave_up(c: Context) -> Outcome:
    forest = c.s.links.forest
    wrapper, cause = _frames(c.s)
    rows = np.flatnonzero(wrapper & c.counted_rows)
    if rows.size == 0:
        return Clean()
    base = c.in_base(rows)
    launching = [r for r in base.tolist() if inside_items(c.program, forest.start[[r]], forest.end[[r]]).any()]
    if not launching:
        return Clean()
    explicit = np.flatnonzero(cause & c.counted_rows)
    return _found(
        c, [[(int(forest.start[r]), int(forest.end[r]))] for r in launching], _GAVE_UP,
        c.sites(explicit if explicit.size else rows),
        _what_shows_it(rows.size / c.step_count, explicit.size / c.step_count),
    )  # fmt: skip


_GAVE_UP = "torch.compile gave up: the function runs eagerly"


def _what_shows_it(calls: float, breaks: float) -> list[str]:
    text = [f"{calls:.0f} calls a step go through torch.compile, but no compiled region ran in them: Dynamo gave up"]
    return [*text, f"torch._dynamo.graph_break() is called {breaks:.0f} times a step"] if breaks else text


def _gave_up_beside(c: Context, beside: Borrowed) -> Outcome:
    """The same where the frames lie in another window: each of its calls covers the events that stand for its own."""
    there, forest = beside.other.links.forest, c.s.links.forest
    wrapper, cause = _frames(beside.other)
    call = topmost(wrapper, there.parent)
    rows = c.in_base(np.flatnonzero((forest.source >= OP) & (beside.row >= 0)))
    rows = rows[call[beside.row[rows]] >= 0]
    if rows.size == 0:
        return Clean()
    calls, steps = np.unique(call[call >= 0]), beside.other.steps
    step = np.searchsorted(steps.start, there.start[calls], side="right") - 1
    # Events of one name may stand for those of another step than events of another name do: the k-th call is one call.
    order = np.lexsort((there.start[calls], step))
    number = np.zeros(calls.size, dtype=np.int64)
    number[order] = np.arange(calls.size) - np.searchsorted(step[order], step[order])
    of_row = number[np.searchsorted(calls, call[beside.row[rows]])]
    spans, firsts = [], []
    for k in np.unique(of_row).tolist():
        inside = rows[of_row == k]
        span = int(forest.start[inside].min()), int(forest.end[inside].max())
        if inside_items(c.program, as_ns([span[0]]), as_ns([span[1]])).any():
            spans.append([span])
            firsts.append(int(inside[np.argmin(forest.start[inside])]))
    if not spans:
        return Clean()
    per_step = max(int(np.unique(step).size), 1)
    lasting = as_ns([end - start for ((start, end),) in spans])
    return _found(
        c, spans, _GAVE_UP, c.base_sites(as_ns(firsts), lasting),
        _what_shows_it(calls.size / per_step, int(cause.sum()) / per_step),
    )  # fmt: skip


def _found(c: Context, spans: list[Span], title: str, sites: list[SiteCost], evidence: list[str]) -> Found:
    return Found(
        title,
        sites,
        as_one_call(c, spans, fuse=True),
        evidence,
        "Code that must run in Python cannot be compiled; it has to move out of the function.",
        FIX,
        cautious=as_one_call(c, spans, fuse=False),
        hopeful=as_one_call(c, spans, fuse=True, call_share=QUICK_CALL),
        assumptions=["calling one compiled function costs what calling one piece costs now (25 us where there is none)",
                     "element-wise kernels on either side of a break become one"],
    )  # fmt: skip
