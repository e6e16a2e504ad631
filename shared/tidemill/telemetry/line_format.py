"""The form of our log lines: one JSON object, without the keys of Powertools that say nothing here."""

import re
from datetime import UTC, datetime
from hashlib import sha256
from logging import LogRecord
from typing import Any, Final, cast

from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.logging.types import LogRecord as Fields

from tidemill.application.attempt.traceback_text import handler_traceback
from tidemill.names import ATTENTION_KEY

#: The message says what the line of code would, the log group names the function, and tracing is off.
_SILENT: Final = ("location", "service", "sampling_rate", "xray_trace_id")
#: The fields with messages and tracebacks. `exception_name`, the class, stays.
_TEXTS: Final = ("exception", "exception_notes", "stack_trace")
#: The class at the start of the field `error`, such as `ValueError: no such address`.
_CLASS: Final = re.compile(r"[A-Z]\w*(?=:|$)")
_WITHHELD: Final = "withheld"
#: The fields with keys of items and of index partitions: those of a limit hold its key, which payloads contain.
_KEYS: Final = frozenset({"keys", "partitions"})
_NOT_OF_A_JOB: Final = ("!", ATTENTION_KEY)
_DIGEST_CHARACTERS: Final = 16
#: In characters, of a traceback that is not the one of a run; and the exceptions that Python formats itself.
_LONGEST_TRACEBACK: Final = 32 * 1024
_MOST_EXCEPTIONS: Final = 100


class LineFormat(LambdaPowertoolsFormatter):
    """With `withhold`, it keeps the class of each exception, and leaves out its message and traceback.

    For stages whose handlers may quote private data in it.
    """

    def __init__(self, *, withhold: bool) -> None:
        super().__init__(serialize_stacktrace=False)
        self._withhold = withhold

    def formatTime(self, record: LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - of the library
        instant = datetime.fromtimestamp(record.created, UTC)
        return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def formatException(self, ei: Any) -> str:  # noqa: N802 - of the library
        """Format an exception as Python does, if it is quickly read.

        Its class may raise, or have causes without end.
        """
        error = ei[1]
        try:
            if _is_small(error):
                return super().formatException(ei)[:_LONGEST_TRACEBACK]
        except BaseException:  # noqa: BLE001 - the line must be written
            return handler_traceback(error, longest=_LONGEST_TRACEBACK)
        return handler_traceback(error, longest=_LONGEST_TRACEBACK)

    def serialize(self, log: Fields) -> str:
        fields = {name: value for name, value in cast("dict[str, Any]", log).items() if name not in _SILENT}
        if "_aws" in fields:
            # Metrics have a time of their own, in milliseconds.
            fields.pop("timestamp", None)
        if self._withhold:
            fields = _withheld(fields)
        # Neither a lone surrogate nor its line is lost: the escape is JSON.
        return super().serialize(cast("Fields", fields)).encode(errors="backslashreplace").decode()


def _is_small(error: BaseException) -> bool:
    """Whether it has few causes, and errors of groups. `traceback` reads all of them."""
    seen, left = 0, [error]
    while left and seen <= _MOST_EXCEPTIONS:
        seen += 1
        each = left.pop()
        held = each.exceptions[:_MOST_EXCEPTIONS] if isinstance(each, BaseExceptionGroup) else ()
        left += [other for other in (each.__cause__, each.__context__, *held) if other]
    return seen <= _MOST_EXCEPTIONS


def _withheld(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fields.items() if name not in _TEXTS}
    if "error" in kept:
        kept["error"] = _class(kept["error"])
    if "errors" in kept:
        kept["errors"] = {key: _class(error) for key, error in kept["errors"].items()}
    for name in _KEYS & kept.keys():
        kept[name] = [_key(key) for key in kept[name]]
    return kept


def _key(key: str) -> str:
    """A digest, which tells keys apart. The key of a job itself has its tenant and its id, as other lines have."""
    return sha256(key.encode()).hexdigest()[:_DIGEST_CHARACTERS] if key.startswith(_NOT_OF_A_JOB) else key


def _class(error: object) -> str:
    found = _CLASS.match(str(error))
    return found[0] if found else _WITHHELD
