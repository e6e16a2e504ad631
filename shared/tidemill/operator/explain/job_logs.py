"""The log lines of one job, from the log groups of all functions of a stage, in the order of time."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tidemill.application.ports import Clock
from tidemill.aws.clients import translated
from tidemill.domain.errors import MissingResourceError

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import FilteredLogEventTypeDef

#: The embedded AWS gives all lines of an invocation the time at which it ended. The time in a line of our own says when
#: it was written, so it counts if it is not farther from the event's than an invocation can last.
_LONGEST_INVOCATION: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that names the job."""

    #: When it was written.
    at: datetime
    #: The key of the function in the output `Functions` of its stack.
    function: str
    #: The members of a line of JSON; None for other text.
    fields: Mapping[str, Any] | None
    text: str


class JobLogs:
    """Reads on from where the last `read` ended, with an overlap: CloudWatch shows lines late, and not in order."""

    #: How late a line may be shown.
    OVERLAP: Final = timedelta(minutes=5)

    def __init__(
        self,
        client: "CloudWatchLogsClient",
        groups: Sequence[tuple[str, str]],
        job_id: str,
        *,
        since: datetime,
        clock: Clock,
    ) -> None:
        """`groups` are pairs of a function's key and the name of its log group. Lines before `since` are not read."""
        self._client = client
        self._groups = groups
        self._job_id = job_id
        self._since = since
        self._clock = clock
        #: Group, stream, event id, text, and the number of the same line before it: the embedded AWS has no event ids.
        self._seen: set[tuple[str, str, str, str, int]] = set()

    def read(self) -> list[LogLine]:
        """The lines that no earlier call returned."""
        began = self._clock()
        found = [line for function, group in self._groups for line in self._lines(function, group)]
        self._since = max(self._since, began - self.OVERLAP)
        # Stable: CloudWatch returns lines of one time in the order of their arrival.
        return sorted(found, key=lambda line: line.at)

    def _lines(self, function: str, group: str) -> Iterator[LogLine]:
        count = Counter[tuple[str, str, str]]()
        for event in self._events(group):
            message = event.get("message", "").rstrip("\n")
            event_key = (event.get("logStreamName", ""), event.get("eventId", ""), message)
            count[event_key] += 1
            key = (group, *event_key, count[event_key])
            line = _line(function, event, message)
            if key not in self._seen and _is_about(line, self._job_id):
                self._seen.add(key)
                yield line

    def _events(self, group: str) -> Iterator["FilteredLogEventTypeDef"]:
        # A phrase, not `{ $.job_id = … }`: it also finds text and lists that name the job, and the embedded AWS
        # evaluates no pattern of JSON. `_is_about` drops the lines of other jobs. The paginator goes on after an empty
        # page: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
        pages = self._client.get_paginator("filter_log_events").paginate(
            logGroupName=group,
            startTime=round(self._since.timestamp() * 1000),
            filterPattern=f'"{self._job_id}"',
        )
        try:
            with translated():
                for page in pages:
                    yield from page["events"]
        except MissingResourceError:
            # Without a log group, the function has written nothing.
            return


def _line(function: str, event: "FilteredLogEventTypeDef", message: str) -> LogLine:
    fields = None
    if message.startswith("{"):
        try:
            fields = json.loads(message)
        except (ValueError, RecursionError):
            fields = None
    at = datetime.fromtimestamp(event.get("timestamp", 0) / 1000, UTC)
    own = _own_time(fields or {})
    if own and abs(own - at) <= _LONGEST_INVOCATION:
        at = own
    return LogLine(at=at, function=function, fields=fields, text=message)


def _own_time(fields: Mapping[str, Any]) -> datetime | None:
    """The time in the line: of the line itself, or of its metrics."""
    try:
        if "timestamp" not in fields:
            return datetime.fromtimestamp(fields["_aws"]["Timestamp"] / 1000, UTC)
        own = datetime.fromisoformat(fields["timestamp"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return own if own.tzinfo else None


def _is_about(line: LogLine, job_id: str) -> bool:
    """A line with a job's fields is about that job. Other lines may name several, such as a list of failed items."""
    named = (line.fields or {}).get("job_id")
    return named == job_id if named is not None else job_id in line.text
