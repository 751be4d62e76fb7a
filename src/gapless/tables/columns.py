"""How do arrays become the plain columns of the model, without a loop in Python?"""

from __future__ import annotations

from array import array

import numpy as np

from gapless.model.timeline import Column
from gapless.tables.intervals import Int


def packed(values: Int) -> Column:
    """The values as a column of int64."""
    out = array("q")
    out.frombytes(np.ascontiguousarray(values, dtype=np.int64).tobytes())
    return out
