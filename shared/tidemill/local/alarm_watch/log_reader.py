"""`LogReader`: the metrics in the log lines of all functions, each line once."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tidemill.local.alarm_watch.log_lines import Source, Value, values_of

#: The embedded AWS gives the lines of an invocation the time of its end, a moment before it shows them.
OVERLAP_MS: Final = 30_000


class LogReader:
    """The embedded AWS writes each invocation to a stream of its own, all at once, so a stream is read once."""

    def __init__(self, logs: Any, sources: Sequence[Source], *, since_ms: int) -> None:
        self._logs = logs
        self._sources = sources
        self._since_ms = since_ms
        #: The streams that were read, with their times.
        self._read: dict[str, int] = {}

    def read(self, *, now_ms: int) -> Iterator[Value]:
        """The values in the lines that no earlier call read."""
        since = self._since_ms
        before = frozenset(self._read)
        for source in self._sources:
            pages = self._logs.get_paginator("filter_log_events").paginate(
                logGroupName=source.log_group, startTime=since
            )
            for event in (event for page in pages for event in page["events"]):
                if event["logStreamName"] not in before:
                    self._read[event["logStreamName"]] = event["timestamp"]
                    yield from values_of(event["message"].rstrip("\n"), event["timestamp"], source)
        self._since_ms = now_ms - OVERLAP_MS
        self._read = {stream: at_ms for stream, at_ms in self._read.items() if at_ms >= self._since_ms}
