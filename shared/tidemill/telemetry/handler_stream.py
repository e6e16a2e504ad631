"""Standard output or error of a worker: each line that a handler prints becomes a JSON line with its job's fields.

Outside of handlers all text passes unchanged, and so does what is written to `buffer`.
"""

import json
import logging
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, TextIO

from tidemill.telemetry.line_output import LineOutput

Fields = Mapping[str, object]

#: The fields of the job whose handler runs in this context; None outside of handlers. A worker runs ten handlers at
#: once, each in its thread. A thread that a handler starts has an empty context, except in free-threaded builds:
#: https://docs.python.org/3/library/threading.html#threading.Thread
HANDLER_FIELDS: Final[ContextVar[Fields | None]] = ContextVar("tidemill_handler_fields", default=None)

#: A line that has not ended is written when it is this long, so that it cannot fill the memory.
LONGEST_BEGUN_LINE: Final = 64 * 1024


class HandlerStream:
    """Stands for a text stream, and has all its attributes. It belongs to all handlers, so none can close it."""

    def __init__(self, stream: TextIO, output: LineOutput, *, level: int, formatter: logging.Formatter) -> None:
        """`level` is that of printed lines, which `formatter` turns into JSON, and `output` writes."""
        self.stream = stream
        self.output = output
        self._level = level
        self._formatter = formatter
        #: The line that each thread of a handler has begun, by the identity of the fields and of the thread. The value
        #: keeps the fields: a thread may outlive its handler, and the fields of no other job may get their identity.
        self._begun: dict[tuple[int, int], tuple[Fields, str]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        fields = HANDLER_FIELDS.get()
        if fields is None:
            self.output.write(text)
            return len(text)
        key = (id(fields), threading.get_ident())
        *lines, begun = (self._begun.pop(key, (fields, ""))[1] + text).split("\n")
        if len(begun) > LONGEST_BEGUN_LINE:
            lines, begun = [*lines, begun], ""
        if begun:
            self._begun[key] = fields, begun
        self._write_lines(lines, fields)
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.write(text)

    def flush(self) -> None:
        """For what was written to `buffer`: text is never kept back."""
        with suppress(OSError, ValueError):
            self.stream.flush()

    def close(self) -> None:
        """No-op, but for what `flush` does."""
        self.flush()

    def end_lines(self, fields: Fields) -> None:
        """The handler has ended: write what its threads have begun."""
        begun = [self._begun.pop(key, (fields, ""))[1] for key in list(self._begun) if key[0] == id(fields)]
        self._write_lines(begun, fields)
        self.flush()

    def _write_lines(self, lines: Iterable[str], fields: Fields) -> None:
        # In one call each, so that lines of two threads do not mix. An empty line says nothing.
        for line in lines:
            if line.strip():
                self.output.write(self._as_json(line, fields) + "\n")

    def _as_json(self, line: str, fields: Fields) -> str:
        try:
            return _completed(line, fields) or self._formatter.format(_record(line, self._level, fields))
        except Exception:  # noqa: BLE001 - a line without fields is better than a job that fails because it prints
            return line


def _completed(line: str, fields: Fields) -> str:
    """A line of JSON, such as a structured logger's, with the fields that it lacks; empty for any other line.

    A line that names its job is as its author wants it. Perhaps it is about another job.
    """
    if not line.startswith("{"):
        return ""
    try:
        written = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if "job_id" in written:
        return line
    lacking = json.dumps({name: value for name, value in fields.items() if name not in written}, separators=(",", ":"))
    return f"{line.rstrip()[:-1]}{',' if written else ''}{lacking[1:]}"


def _record(line: str, level: int, fields: Fields) -> logging.LogRecord:
    record = logging.LogRecord("print", level, "", 0, "%s", (line,), None, func="print")
    record.__dict__.update(fields)
    return record
