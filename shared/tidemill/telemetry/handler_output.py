"""What handlers log or print gets the fields of their jobs, in the `logging` module and on standard output and error.

Lambda's own handler of log records writes text, and drops fields: in a handler of a job, ours takes its place.
https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html
"""

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TextIO, cast

from tidemill.application.attempt.handler_context import HandlerContext
from tidemill.application.attempt.run_log import RUN_LOGGER
from tidemill.application.attempt.traceback_text import handler_traceback
from tidemill.domain.job import Job
from tidemill.telemetry.handler_stream import HANDLER_FIELDS, HandlerStream
from tidemill.telemetry.job_fields import job_fields
from tidemill.telemetry.line_output import LineOutput
from tidemill.telemetry.outcome_log import logger
from tidemill.telemetry.run_lines import LARGEST_TRACEBACK_BYTES
from tidemill.telemetry.tracing import tracing

#: The outputs that replace standard output and standard error, once they are installed.
_OUTPUTS: Final[list[LineOutput]] = []


@contextmanager
def handler_scope(job: Job, *, request_id: str) -> Iterator[HandlerContext]:
    """`HandlerScope`: what is logged or printed inside gets the fields. `request_id` is the invocation's."""
    fields = job_fields(job) | {"request_id": request_id}
    token = HANDLER_FIELDS.set(fields)
    try:
        with tracing().run(job) as trace:
            yield HandlerContext(fields=fields, trace=trace)
    finally:
        HANDLER_FIELDS.reset(token)
        _end_lines(fields)


def _end_lines(fields: Mapping[str, object]) -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, HandlerStream):
            stream.end_lines(fields)


@contextmanager
def joint_scope(jobs: Sequence[Job], *, request_id: str) -> Iterator[None]:
    """`JointScope`: what is logged inside belongs to no single job, so it gets the fields that all of them have.

    A line of `Run.log` has the fields of its own job. The error of a call has a line of its own.
    """
    first = jobs[0]
    own = {"tenant": first.tenant, "job_type": first.type, "lane": first.lane}
    fields = own | {"jobs": len(jobs), "request_id": request_id}
    token = HANDLER_FIELDS.set(fields)
    failure: dict[str, object] = {}
    try:
        yield
    except Exception as error:
        text = handler_traceback(error, longest=LARGEST_TRACEBACK_BYTES)
        failure = {"exception_name": type(error).__name__, "exception": text}
        raise
    finally:
        HANDLER_FIELDS.reset(token)
        _end_lines(fields)
        if failure:
            logger().warning("batch handler failed", extra=fields | failure)


def install() -> None:
    """Call it before job types are imported, since their loggers keep the stream of their creation. May be repeated."""
    if isinstance(sys.stdout, HandlerStream):
        return
    formatter, level = logger().formatter, _run_log_level()
    out, err = _OUTPUTS[:] = LineOutput(sys.stdout, sys.stderr), LineOutput(sys.stderr, sys.stdout)
    # It needs no more of a stream than `write`.
    records = _Records(cast("TextIO", out))
    records.setFormatter(formatter)
    root = logging.getLogger()
    for handler in root.handlers:
        handler.addFilter(_elsewhere)
    root.addHandler(records)
    logging.getLogger(RUN_LOGGER).setLevel(level)
    # A traceback or a warning goes to standard error.
    sys.stdout = cast("TextIO", HandlerStream(sys.stdout, out, level=logging.INFO, formatter=formatter))
    sys.stderr = cast("TextIO", HandlerStream(sys.stderr, err, level=logging.WARNING, formatter=formatter))


def streams_intact() -> bool:
    """Whether the files of the standard streams are still those that `install` found."""
    return all(output.intact() for output in _OUTPUTS)


def _run_log_level() -> str:
    """Read the variable as Powertools does: in any case, and `INFO` for an unknown name, which must stop no worker."""
    name = os.environ.get("POWERTOOLS_LOG_LEVEL", "").upper()
    return name if name in logging.getLevelNamesMapping() else "INFO"


def remove() -> None:
    """Undo `install`, for tests."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        handler.removeFilter(_elsewhere)
        if isinstance(handler, _Records):
            root.removeHandler(handler)
    for name in ("stdout", "stderr"):
        if isinstance(stream := getattr(sys, name), HandlerStream):
            setattr(sys, name, stream.stream)
    while _OUTPUTS:
        _OUTPUTS.pop().close()


class _Records(logging.StreamHandler[TextIO]):
    """Writes the records of handlers as JSON lines."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not _of_a_handler(record) or _written_by_its_logger(record):
            return False
        # What the author of the line has named wins. `Run.log` has set all of them, in any thread.
        for name, value in (HANDLER_FIELDS.get() or {}).items():
            record.__dict__.setdefault(name, value)
        return super().filter(record)


def _of_a_handler(record: logging.LogRecord) -> bool:
    return HANDLER_FIELDS.get() is not None or record.name == RUN_LOGGER


def _written_by_its_logger(record: logging.LogRecord) -> bool:
    """Whether a handler that the job type or a library added writes the record to a stream that gives it the fields."""
    found: logging.Logger | None = logging.getLogger(record.name)
    while found:
        if any(isinstance(getattr(handler, "stream", None), HandlerStream) for handler in found.handlers):
            return True
        found = found.parent if found.propagate else None
    return False


def _elsewhere(record: logging.LogRecord) -> bool:
    return not _of_a_handler(record)
