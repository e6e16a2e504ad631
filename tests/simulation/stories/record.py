"""The lines of one story."""

from typing import Final

from tests.simulation.stories.readable import Readable, without_times_and_ids
from tests.simulation.world.cloudwatch import Line

#: The members that Python and the logger add to a log line.
_NO_FIELDS: Final = frozenset(
    (
        *("name", "msg", "args", "message", "asctime", "taskName", "stage", "_aws"),
        *("levelname", "levelno", "pathname", "filename", "module", "lineno", "funcName"),
        *("exc_info", "exc_text", "stack_info", "created", "msecs", "relativeCreated"),
        *("thread", "threadName", "process", "processName"),
    )
)


class Record:
    """What happens, in its order."""

    def __init__(self) -> None:
        self._readable = Readable()
        self._lines: list[str] = []
        #: What callers and operators get, without times and ids.
        self.answers: list[str] = []

    def note(self, who: str, what: str, details: object = None) -> None:
        self._lines += self._readable.lines(f"{who}: {what}", details)

    def answer(self, who: str, what: str, details: object) -> None:
        self.answers.append(without_times_and_ids(f"{what} {details}"))
        self.note(who, what, details)

    def log_line(self, line: Line) -> None:
        """A log line, with the metrics that it carries."""
        fields = {
            f"metric {name}" if name in line.metrics else name: value
            for name, value in line.fields.items()
            if name not in _NO_FIELDS
        }
        self.note(function_of(line.by), f"logs {line.message}", fields)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def function_of(process: str) -> str:
    """Without the number of its environment."""
    return process.rpartition(" ")[0] or process
