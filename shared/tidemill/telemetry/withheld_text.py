"""Log lines without the text of exceptions, for stages whose handlers may quote private data in it."""

import re
from typing import Any, Final, cast

from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.logging.types import LogRecord

#: The fields with messages and tracebacks. `exception_name`, the class, stays.
_TEXTS: Final = ("exception", "exception_notes", "stack_trace")
#: The class at the start of the field `error`, such as `ValueError: no such address`.
_CLASS: Final = re.compile(r"[A-Z]\w*(?=:|$)")
_WITHHELD: Final = "withheld"


class WithheldText(LambdaPowertoolsFormatter):
    """Keeps the class of each exception, and leaves out its message and traceback."""

    def serialize(self, log: LogRecord) -> str:
        fields = cast("dict[str, Any]", log)
        kept = {name: value for name, value in fields.items() if name not in _TEXTS}
        if "error" in kept:
            kept["error"] = _class(kept["error"])
        if "errors" in kept:
            kept["errors"] = {key: _class(error) for key, error in kept["errors"].items()}
        return super().serialize(cast("LogRecord", kept))


def _class(error: object) -> str:
    found = _CLASS.match(str(error))
    return found[0] if found else _WITHHELD
