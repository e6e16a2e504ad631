"""A queueing model of one lane that many tenants share, one of which floods it. No AWS, and no code of the engine.

SQS delivers the messages of quiet tenants before those of a noisy one. A tenant is noisy from the time when it has more
than a tenth of all messages in flight, and at least 30 of them, until it has no backlog. The second documented measure,
processing time, is left out: it would only find a noisy tenant earlier.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

#: The lane `default` of the stage `prod`, and the largest batch of a mapping.
INVOCATIONS: Final = 50
BATCH: Final = 10
#: Lambda reads a stream four times a second: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
STREAM_SECONDS: Final = 0.25
#: The calls between the stream and the start of a run: to publish, to receive, to claim.
CALLS_SECONDS: Final = 0.03
#: A message that starts no run, since its job is parked.
PARKED_SECONDS: Final = 0.05
#: A partition takes 1,000 writes a second. A job that finds no room needs two of the item, and so does a run:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
WRITES_PER_SECOND: Final = 1_000.0
WRITES_OF_A_MESSAGE: Final = 2.0
#: A worker whose write was throttled tries for so long, and holds the job below a ceiling that doubles.
THROTTLED_SECONDS: Final = 1.0
FIRST_HOLD_SECONDS: Final = 60.0
LONGEST_HOLD_SECONDS: Final = 900.0
NOISY_SHARE: Final = 0.1
NOISY_MESSAGES: Final = 30
#: The tenant that floods. The others have higher numbers.
FLOODER: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Jobs a second that each tenant submits, and the mean seconds of a run."""

    others: int
    rate: float
    seconds: float
    flood_rate: float
    flood_seconds: float


@dataclass(slots=True)
class _Job:
    tenant: int
    #: When it was accepted.
    at: float
    seconds: float
    holds: int = 0
    #: A slot of the cap is reserved for it.
    reserved: bool = False


@dataclass
class Lane:
    """`cap` bounds the runs of the flooding tenant."""

    load: Load
    fair: bool = True
    cap: int | None = None
    seed: int = 1
    now: float = 0.0
    #: Seconds from the acceptance to the start, of the jobs of the others.
    latencies: list[float] = field(default_factory=list)
    flood_started: int = 0
    most_flood_runs: int = 0
    _flood_runs: int = 0
    #: Slots of the cap that are taken or reserved.
    _taken: int = 0
    _free: int = INVOCATIONS
    _quiet: deque[_Job] = field(default_factory=deque)
    _noisy_messages: deque[_Job] = field(default_factory=deque)
    _noisy: bool = False
    _in_flight: Counter[int] = field(default_factory=Counter)
    _parked: deque[_Job] = field(default_factory=deque)
    _writes: float = WRITES_PER_SECOND
    _written_at: float = 0.0
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 - a model
        for tenant in range(self.load.others + 1):
            self._next(tenant)

    def run_until(self, end: float) -> None:
        while self._events and self._events[0][0] < end:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
            self._invoke()
        self.now = end

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), happen))

    def _next(self, tenant: int) -> None:
        rate = self.load.flood_rate if tenant == FLOODER else self.load.rate
        self._after(self._random.expovariate(rate), lambda: self._submit(tenant))

    def _submit(self, tenant: int) -> None:
        mean = self.load.flood_seconds if tenant == FLOODER else self.load.seconds
        self._send(_Job(tenant, self.now, mean * self._random.uniform(0.5, 1.5)))
        self._next(tenant)

    def _send(self, job: _Job) -> None:
        """Through the stream to the lane."""
        self._after(self._random.uniform(0, STREAM_SECONDS) + CALLS_SECONDS, lambda: self._arrive(job))

    def _arrive(self, job: _Job) -> None:
        noisy = self._noisy and job.tenant == FLOODER
        (self._noisy_messages if noisy else self._quiet).append(job)

    def _invoke(self) -> None:
        """Each free invocation gets a batch of the messages that wait."""
        while self._free and (self._quiet or self._noisy_messages):
            batch = [self._received() for _ in range(min(BATCH, len(self._quiet) + len(self._noisy_messages)))]
            self._free -= 1
            for job in batch:
                self._in_flight[job.tenant] += 1
            # A batch ends with its longest run, and its messages are in flight until then.
            longest = max(self._handle(job) for job in batch)
            self._after(longest, lambda batch=batch: self._end(batch))  # type: ignore[misc]  # bound now
            self._look()

    def _received(self) -> _Job:
        return (self._quiet or self._noisy_messages).popleft()

    def _end(self, batch: list[_Job]) -> None:
        self._free += 1
        for job in batch:
            self._in_flight[job.tenant] -= 1
        self._look()

    def _look(self) -> None:
        """Who is noisy changes with the messages in flight, and with the backlog."""
        if not self.fair:
            return
        own, total = self._in_flight[FLOODER], self._in_flight.total()
        if not self._noisy and own >= NOISY_MESSAGES and own > NOISY_SHARE * total:
            self._noisy = True
            messages = list(self._quiet)
            self._quiet = deque(job for job in messages if job.tenant != FLOODER)
            self._noisy_messages.extend(job for job in messages if job.tenant == FLOODER)
        elif self._noisy and not self._noisy_messages:
            self._noisy = False

    def _handle(self, job: _Job) -> float:
        """How long the message keeps its worker."""
        if job.tenant != FLOODER:
            self.latencies.append(self.now - job.at)
            return job.seconds
        if self.cap is None:
            return self._run_flood(job)
        if not job.reserved and not self._write():
            return self._throttled(job)
        if not job.reserved and self._taken >= self.cap:
            self._parked.append(job)
            return PARKED_SECONDS
        self._taken += not job.reserved
        return self._run_flood(job)

    def _run_flood(self, job: _Job) -> float:
        self.flood_started += 1
        self._flood_runs += 1
        self.most_flood_runs = max(self.most_flood_runs, self._flood_runs)
        self._after(job.seconds, self._flood_run_ended)
        return job.seconds

    def _flood_run_ended(self) -> None:
        self._flood_runs -= 1
        if self.cap is None:
            return
        if self._parked:
            # The run that ends hands its slot over.
            job = self._parked.popleft()
            job.reserved = True
            self._send(job)
        else:
            self._taken -= 1

    def _write(self) -> bool:
        """Whether the item of the cap takes the writes of one more message."""
        self._writes = min(self._writes + (self.now - self._written_at) * WRITES_PER_SECOND, WRITES_PER_SECOND)
        self._written_at = self.now
        if self._writes < WRITES_OF_A_MESSAGE:
            return False
        self._writes -= WRITES_OF_A_MESSAGE
        return True

    def _throttled(self, job: _Job) -> float:
        ceiling = min(FIRST_HOLD_SECONDS * 2.0**job.holds, LONGEST_HOLD_SECONDS)
        job.holds = min(job.holds + 1, 10)
        self._after(self._random.uniform(1, ceiling), lambda: self._arrive(job))
        return THROTTLED_SECONDS
