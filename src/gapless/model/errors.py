"""Which errors a user can meet: each is one line that says what, why it matters and what to do next."""

from __future__ import annotations


class GaplessError(Exception):
    """A problem the user can act on; `str(error)` is one line, `exit_code` is what the command line returns."""

    exit_code = 2


class NotATraceError(GaplessError):
    """The file is not a PyTorch profiler trace; the message says what it looks like."""


class EmptyTraceError(GaplessError):
    """The file is a trace, but holds no usable event."""


class UsageError(GaplessError):
    """A flag or argument cannot be used as given."""


class CannotJudgeError(GaplessError):
    """A gate or comparison was asked for that this input cannot decide."""


class GateBreachedError(GaplessError):
    """A gate of `--fail-on` was breached; the run itself worked."""

    exit_code = 1
