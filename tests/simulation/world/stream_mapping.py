"""The event source mapping of a stream: it delivers records in order for each shard, at least once, for 24 hours.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final
from zlib import crc32

from tests.simulation.world.dynamodb_table import Record, Table
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.lambda_environments import Function, FunctionError, Throttled
from tests.simulation.world.lane_mapping import MalformedAnswer, failed_identifiers
from tests.simulation.world.sqs_queue import Queue
from tests.simulation.world.task_scheduler import Process, Scheduler
from tests.simulation.world.trace import Trace

#: "All data in DynamoDB Streams is subject to a 24-hour lifetime."
TRIMMED_MS: Final = 24 * 3600 * 1000
_ARRIVAL_MS: Final = (5, 300)
_OUTAGE_MS: Final = (60_000, 30 * 3600 * 1000)
_LOOK_AGAIN_MS: Final = 600_000
_STALLED_MS: Final = 1_000
_LONGEST_BACKOFF_MS: Final = 60_000

Pattern = Mapping[str, Any]


class _Result(Enum):
    SUCCESS = auto()
    PARTIAL = auto()
    ERROR = auto()
    THROTTLED = auto()


class StreamMapping:
    """One poller for each part of each shard. All records of one item are in one part.

    The factor is the number of parts: of concurrent batches of a shard.
    """

    def __init__(
        self,
        table: Table,
        function: Function,
        *,
        patterns: Sequence[Pattern],
        batch_size: int,
        retries: int,
        oldest_seconds: int,
        failures: Queue,
        scheduler: Scheduler,
        faults: Faults,
        trace: Trace,
        factor: int = 1,
    ) -> None:
        self._parts = [_Part(self) for _ in table.shards for _ in range(factor)]
        self._factor = factor
        self.function = function
        self.table = table
        self.patterns = patterns
        self.batch_size = batch_size
        self.retries = retries
        self.oldest_ms = oldest_seconds * 1000
        self.failures = failures
        self.scheduler = scheduler
        self.faults = faults
        self.trace = trace
        self.process = Process("stream poller")
        #: While set, no further batch is delivered.
        self.stalled = False
        table.watchers.append(self._arrived)

    @property
    def behind(self) -> int:
        """Number of records that are not read yet."""
        return sum(part.behind for part in self._parts)

    def read_from_the_oldest(self) -> None:
        """Begin with the records that the stream has already, as with `TRIM_HORIZON`."""
        for shard in self.table.shards:
            for record in shard:
                self._arrived(record)

    def delete(self) -> None:
        """Deliver nothing more. A batch that is being delivered is not tried again."""
        self.table.watchers.remove(self._arrived)
        self.retries = 0
        for part in self._parts:
            part.drop()

    def _arrived(self, record: Record) -> None:
        part = crc32(str(record.keys).encode()) % self._factor
        self._parts[record.shard * self._factor + part].add(record)


class _Part:
    """The poller of one part of a shard. `position` is the first record that is not handled."""

    def __init__(self, mapping: StreamMapping) -> None:
        self._mapping = mapping
        self._records: list[Record] = []
        self._position = 0
        self._polls = False

    @property
    def behind(self) -> int:
        return len(self._records) - self._position

    def add(self, record: Record) -> None:
        self._records.append(record)
        if not self._polls:
            self._polls = True
            delay_ms = self._mapping.scheduler.random.randint(*_ARRIVAL_MS)
            self._mapping.scheduler.spawn(self._mapping.process, self._poll, delay_ms=delay_ms)

    def drop(self) -> None:
        self._records = self._records[: self._position]

    def _poll(self) -> None:
        mapping = self._mapping
        if mapping.faults.occurs(Fault.STREAM_OUTAGE):
            outage_ms = mapping.scheduler.random.randint(*_OUTAGE_MS)
            mapping.trace.log(mapping.scheduler.now_ms, "stream poller", f"*stalls for {outage_ms // 1000} s")
            ends_ms = mapping.scheduler.now_ms + outage_ms
            while mapping.scheduler.now_ms < ends_ms and not mapping.faults.stopped:
                mapping.scheduler.sleep(min(_LOOK_AGAIN_MS, ends_ms - mapping.scheduler.now_ms))
        while self.behind:
            while mapping.stalled:
                mapping.scheduler.sleep(_STALLED_MS)
            self._trim()
            batch = self._records[self._position : self._position + mapping.batch_size]
            wanted = [record for record in batch if matches(mapping.patterns, event_record(record, mapping.table.name))]
            if wanted:
                self._deliver(wanted)
            # Fewer are left if the mapping was deleted meanwhile.
            self._position = min(self._position + len(batch), len(self._records))
            mapping.scheduler.sleep(mapping.scheduler.random.randint(1, 50))
        self._polls = False

    def _trim(self) -> None:
        oldest_ms = self._mapping.scheduler.now_ms - TRIMMED_MS
        while self.behind and self._records[self._position].at_ms < oldest_ms:
            self._mapping.faults.count(Fault.STREAM_TRIMMED)
            self._position += 1

    def _deliver(self, batch: list[Record]) -> None:
        """Deliver the batch until each record has succeeded or is given up."""
        tries = 0
        while batch:
            left, result = self._tried(batch)
            if result is _Result.SUCCESS:
                if self._mapping.faults.occurs(Fault.STREAM_REPEATED):
                    continue
                return
            if len(left) < len(batch):
                # The batch is cut at the first failed record. The rest becomes a new batch.
                batch, tries = left, 0
            elif result is not _Result.THROTTLED:
                # "This doesn't apply to service errors or throttles where the batch didn't reach the function."
                tries += 1
                if result is _Result.ERROR and len(batch) > 1:
                    half = len(batch) // 2
                    self._deliver(batch[:half])
                    batch, tries = batch[half:], 0
                    continue
            batch = self._kept(batch, tries)
            pause_ms = min(200 * 2 ** min(tries, 8), _LONGEST_BACKOFF_MS)
            self._mapping.scheduler.sleep(self._mapping.scheduler.random.randint(1, pause_ms))

    def _tried(self, batch: list[Record]) -> tuple[list[Record], "_Result"]:
        """The records to deliver again, and the result."""
        try:
            answer = self._mapping.function.invoke(
                {"Records": [event_record(record, self._mapping.table.name) for record in batch]}
            )
            if isinstance(answer, FunctionError):
                return batch, _Result.ERROR
            failed = failed_identifiers(answer, None)
        except Throttled:
            return batch, _Result.THROTTLED
        except MalformedAnswer:
            return batch, _Result.ERROR
        if not failed:
            return [], _Result.SUCCESS
        # "Lambda uses the lowest sequence number as the checkpoint" and tries again from there.
        lowest = min(int(name) for name in failed)
        return [record for record in batch if record.sequence >= lowest], _Result.PARTIAL

    def _kept(self, batch: list[Record], tries: int) -> list[Record]:
        """Drop records that are too old, or all after too many tries. The failure queue gets their metadata."""
        mapping = self._mapping
        oldest_ms = mapping.scheduler.now_ms - mapping.oldest_ms
        left = [] if tries > mapping.retries else [record for record in batch if record.at_ms >= oldest_ms]
        if len(left) < len(batch):
            mapping.faults.count(Fault.STREAM_TRIMMED)
            mapping.trace.log(mapping.scheduler.now_ms, "stream poller", f"*gives up {len(batch) - len(left)} records")
            mapping.failures.send('{"DDBStreamBatchInfo":{}}')
        return left


def event_record(record: Record, table: str = "jobs") -> dict[str, Any]:
    """A record in the form that a function receives."""
    images = {"NewImage": record.after, "OldImage": record.before}
    return {
        "eventID": str(record.sequence),
        "eventName": record.name,
        "eventSource": "aws:dynamodb",
        "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:111122223333:table/{table}/stream/2026-01-01T00:00:00.000",
        "dynamodb": {
            "Keys": record.keys,
            "SequenceNumber": str(record.sequence),
            "ApproximateCreationDateTime": record.at_ms // 1000,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            **{name: image for name, image in images.items() if image is not None},
        },
        **({"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}} if record.by_ttl else {}),
    }


def matches(patterns: Sequence[Pattern], record: Mapping[str, Any]) -> bool:
    """Whether any of the filters lets the record through; without filters all records pass.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
    """
    return not patterns or any(_fits(pattern, record) for pattern in patterns)


def _fits(pattern: Any, value: Any) -> bool:
    if isinstance(pattern, Mapping):
        held = value if isinstance(value, Mapping) else {}
        return all(_fits(part, held.get(name)) for name, part in pattern.items())
    return any(_rule(rule, value) for rule in pattern)


def _rule(rule: Any, value: Any) -> bool:
    if not isinstance(rule, Mapping):
        return bool(rule == value)
    ((name, wanted),) = rule.items()
    match name:
        case "exists":
            return (value is not None) is wanted
        case "prefix":
            return isinstance(value, str) and value.startswith(wanted)
        case "anything-but":
            return value is not None and value not in (wanted if isinstance(wanted, list) else [wanted])
        case _:
            raise NotImplementedError(f"a filter rule {name!r}")
