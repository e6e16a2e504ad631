"""`FailedInvocations`: the functions that the emulator's own log reports as failed or out of time.

The embedded AWS has no other sign of them: the log of a function ends as if it had succeeded.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidemill.local.alarms import MetricKey

_FAILED: Final = re.compile(r"Lambda (\S+) (?:failed processing|timed out after)")


class FailedInvocations:
    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = log.stat().st_size if log.exists() else 0

    def read(self) -> Iterator[MetricKey]:
        """The metric of the errors of each function, once for each new line about it."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        # The last line may be incomplete.
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for found in _FAILED.finditer(whole.decode(errors="replace")):
            yield MetricKey("AWS/Lambda", "Errors", (("FunctionName", found[1]),))
