"""Where does the program print a CUDA tensor?

To choose digits and width, printing computes on the tensor and reads some of its values one by one: `isfinite`,
`masked_select`, `min`, `max` and `ceil`, each followed by a read, then a read an element. On the device every such op is
launched and waited for. A print is a run of consecutive outermost ops that all belong to this work, holding an
`isfinite`, a `masked_select` and at least `FEWEST_READS` reads; the Python round it is part of it.
"""

from __future__ import annotations

import numpy as np

from gapless.analyses.host import OP
from gapless.analyses.op_costs import base_name
from gapless.rules._python import python_round
from gapless.rules.context import Context
from gapless.tables.intervals import Set, as_ns, merge

READS = {"item", "is_nonzero"}
FEWEST_READS = 3
PRINTING = READS | {
    "reshape", "isfinite", "ne", "__and__", "bitwise_and", "masked_select", "abs", "to", "min", "max", "unbind", "ceil",
    "div", "gt", "lt", "detach", "resolve_conj", "resolve_neg", "select", "slice", "cat", "stack", "view_as_real", "view",
}  # fmt: skip
MOST_PYTHON_NS = 300_000
"""Formatting text between the reads and after the last takes the host up to this long."""


def prints(c: Context) -> Set:
    """Intervals of the base step in which a tensor is printed, the Python round them included."""
    forest = c.s.links.forest
    parent = forest.source[np.maximum(forest.parent, 0)]
    roots = np.flatnonzero((forest.source == OP) & ((forest.parent < 0) | (parent < OP)))
    rows = c.in_base(roots)
    rows = rows[np.argsort(forest.start[rows], kind="stable")]
    names = [base_name(c.name_of(int(row))) for row in rows.tolist()]
    first, last = [], []
    begin = 0
    for i, name in enumerate([*names, ""]):
        if name in PRINTING:
            continue
        run = names[begin:i]
        if "isfinite" in run and "masked_select" in run and sum(n in READS for n in run) >= FEWEST_READS:
            first.append(int(rows[begin]))
            last.append(int(rows[i - 1]))
        begin = i + 1
    if not first:
        return as_ns([]), as_ns([])
    low, _ = python_round(c, as_ns(first), MOST_PYTHON_NS)
    _, high = python_round(c, as_ns(last), MOST_PYTHON_NS)
    return merge(low, high)
