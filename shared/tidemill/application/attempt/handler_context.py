"""The surroundings of a run, which its worker provides: fields of log lines, and the trace of calls and new jobs."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from msgspec import Struct

from tidemill.domain.job import Job


class HandlerContext(Struct, frozen=True, kw_only=True):
    """For the call of one handler."""

    #: The fields of its log lines.
    fields: Mapping[str, object]
    #: The trace of the job. With tracing, its parent is the span of the run.
    trace: str


#: Entered around the call of a job's handler, in its thread.
HandlerScope = Callable[[Job], AbstractContextManager[HandlerContext]]
#: Entered around the settle of a run.
SettleScope = Callable[[Job], AbstractContextManager[None]]
