"""One trace and its tables, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import polars as pl

from gapless.analyses import tables as derived
from gapless.analyses.study import Study, StudyOptions, study
from gapless.ingest.raw import RawTrace
from gapless.model.errors import GaplessError
from gapless.model.meta import TraceMeta
from gapless.model.schema import TABLES


class Trace:
    """A trace. Every table is a polars LazyFrame with the columns documented in `docs/columns.md`; times are ns.

    `raw` are the tables as read; `study()` runs the analyses (links, steps, syncs, accounting) once and keeps them.
    """

    def __init__(self, raw: RawTrace, *, stacks: Callable[[], RawTrace] | None = None) -> None:
        """`stacks` reads the window with stacks that `gapless run` records beside its timing window."""
        self.raw = raw
        self._stacks = stacks
        self.stacks_unread = ""
        """Why the window with stacks beside this one could not be read, once `stacks` was asked for; '' if it could."""
        self._studies: dict[StudyOptions, Study] = {}

    @property
    def meta(self) -> TraceMeta:
        """What the file says about itself."""
        return self.raw.meta

    def study(self, options: StudyOptions | None = None) -> Study:
        """All analyses, for these options."""
        chosen = options or StudyOptions()
        if chosen not in self._studies:
            self._studies[chosen] = study(self.raw, chosen)
        return self._studies[chosen]

    @cached_property
    def stacks(self) -> Study | None:
        """The window with stacks beside this one, studied; None where there is none that can be read."""
        if self._stacks is None:
            return None
        try:
            return study(self._stacks())
        except GaplessError as error:
            self.stacks_unread = str(error)
            return None

    @cached_property
    def ops(self) -> pl.LazyFrame:
        """CPU operators and annotations, with their parent op, outermost op and step."""
        return derived.ops_table(self.study()).lazy()

    @cached_property
    def calls(self) -> pl.LazyFrame:
        """Runtime and driver calls, with class, op, step, latency and queue depth."""
        return derived.calls_table(self.study()).lazy()

    @cached_property
    def activities(self) -> pl.LazyFrame:
        """Kernels, copies and memsets, with their launch, op, step, family and dtype."""
        return derived.activities_table(self.study()).lazy()

    @property
    def kernels(self) -> pl.LazyFrame:
        """The kernels among the activities."""
        return self.activities.filter(pl.col("kind").cast(pl.String) == "kernel")

    @property
    def copies(self) -> pl.LazyFrame:
        """The copies among the activities."""
        return self.activities.filter(pl.col("kind").cast(pl.String) == "memcpy")

    @property
    def launches(self) -> pl.LazyFrame:
        """The calls that put work on a GPU."""
        return self.calls.filter(pl.col("activities") > 0)

    @cached_property
    def syncs(self) -> pl.LazyFrame:
        """Blocking calls and what each waited for."""
        return derived.syncs_table(self.study()).lazy()

    @cached_property
    def gaps(self) -> pl.LazyFrame:
        """Idle stretches of every device in the window, split by cause."""
        return derived.gaps_table(self.study()).lazy()

    @cached_property
    def steps(self) -> pl.LazyFrame:
        """Steps, and which of them count."""
        return derived.steps_view(self.study()).lazy()

    def raw_tables(self) -> dict[str, pl.DataFrame]:
        """The tables as read, by name."""
        return {table.name: getattr(self.raw, table.name) for table in TABLES}

    def frames_by_name(self) -> dict[str, pl.LazyFrame]:
        """Every table, derived ones included, by the name that `gapless query` knows it by."""
        named = {name: frame.lazy() for name, frame in self.raw_tables().items()}
        for name in ("ops", "calls", "activities", "kernels", "copies", "launches", "syncs", "gaps", "steps"):
            named[name] = getattr(self, name)
        return named
