"""Writes the lines of the engine: `EngineLog`.

A line may carry metrics, so no handler may silence it. It depends on no logger, level or handler of records, nor on
`logging.disable`, a record factory, `print` or `sys.stdout`, nor on a variable of the environment.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from tidemill.telemetry.line_format import LineFormat
from tidemill.telemetry.line_output import LineOutput

Extra = Mapping[str, Any]
_NONE: Final[Extra] = {}


class EngineLog:
    """Several threads may share it. Each line is one write."""

    def __init__(self, formatter: LineFormat, output: LineOutput) -> None:
        self.formatter = formatter
        self.output = output

    def info(self, message: str, *, extra: Extra = _NONE) -> None:
        self._write(logging.INFO, "INFO", message, extra)

    def warning(self, message: str, *, extra: Extra = _NONE) -> None:
        self._write(logging.WARNING, "WARNING", message, extra)

    def error(self, message: str, *, extra: Extra = _NONE, exc_info: BaseException | None = None) -> None:
        self._write(logging.ERROR, "ERROR", message, extra, exc_info)

    def emit(self, record: logging.LogRecord) -> None:
        self.output.write(self.formatter.format(record) + "\n")

    def _write(self, level: int, name: str, message: str, extra: Extra, error: BaseException | None = None) -> None:
        exc_info = (type(error), error, error.__traceback__) if error else None
        record = logging.LogRecord("tidemill-engine", level, "", 0, message, None, exc_info)
        record.__dict__.update(extra)
        # `logging.addLevelName` changes the names of levels.
        record.levelname = name
        self.emit(record)
