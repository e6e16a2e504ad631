"""`Run.log`: a logger of the standard library that knows its job, in any thread of the handler."""

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

#: The name of its logger. A worker sets its level to that of Tidemill's own lines, and writes it as JSON.
RUN_LOGGER: Final = "tidemill.run"
#: `logging` raises `KeyError` for a field with one of these names, which would fail the job.
_RESERVED: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"asctime", "message"}


class RunLog(logging.LoggerAdapter[logging.Logger]):
    """`extra` adds fields to a line. One that `logging` uses itself gets an underscore at its end: `name_`."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        super().__init__(logging.getLogger(RUN_LOGGER), fields)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - of `logging`
        # A job file that configures `logging` disables the loggers that it does not name.
        self.logger.disabled = False
        return super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        asked = kwargs.get("extra") or {}
        renamed = {f"{name}_" if name in _RESERVED else name: value for name, value in asked.items()}
        kwargs["extra"] = {**(self.extra or {}), **renamed}
        return msg, kwargs
