"""The configuration of a lane, checked when it is created. Imports no CDK."""

from dataclasses import dataclass
from typing import Final

from tidemill.cdk.synth_errors import SettingError, require
from tidemill.names import LARGEST_MAX_ATTEMPTS, SETTLE_RESERVE_SECONDS, Lane

#: The longest retention of SQS. For a dead-letter message it counts from when the original message was sent.
DLQ_RETENTION_DAYS: Final = 14
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html: room for retries of throttled batches.
VISIBILITY_PER_TIMEOUT: Final = 6
LONGEST_FUNCTION_TIMEOUT_SECONDS: Final = 900
#: The minimum of `MaximumConcurrency` of an SQS mapping.
LEAST_CONCURRENCY: Final = 2
#: The largest batch of an SQS mapping without a batching window, and the longest window:
#: https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
LARGEST_BATCH_AT_ONCE: Final = 10
LONGEST_BATCHING_WINDOW_SECONDS: Final = 300
#: SQS allows more, but a worker has a thread for each message.
LARGEST_BATCH: Final = 100
#: What a worker takes without jobs, and for the largest payload of the worst shape, which each message may bring:
#: `python -m tests.benchmarks.limits` measures both.
WORKER_MB: Final = 150
PAYLOAD_MB: Final = 8


@dataclass(frozen=True, kw_only=True)
class LaneConfig:
    """One lane: the timeouts of its jobs, its concurrency, and when a backlog is late."""

    name: Lane
    function_timeout_seconds: int
    job_timeout_seconds: int
    #: Limit of the queue's mapping. Unlike reserved concurrency it causes no throttling, so it uses up no receives.
    max_concurrency: int
    #: Part of the account's concurrency that is reserved for the workers. None: they use the unreserved part.
    reserved_concurrency: int | None = None
    memory_mb: int = 512
    #: At most so many messages in one invocation, and so long Lambda waits for them.
    batch_size: int = LARGEST_BATCH_AT_ONCE
    batching_window_seconds: int = 0
    queue_retention_days: int = 4
    #: Whether `POST /jobs` also sends the first message of a job, and a worker that of a next run which is due at once.
    #: Such a run starts some 200 ms earlier.
    first_message_at_once: bool = False
    #: The alarm `LateJobs` fires when a message is older than this.
    late_seconds: int = 15 * 60

    def __post_init__(self) -> None:
        try:
            self._check()
        except SettingError as wrong:
            raise SettingError(f"lane {self.name}: {wrong}") from None

    def _check(self) -> None:
        require(self.job_timeout_seconds > 0, f"job_timeout_seconds {self.job_timeout_seconds} must be positive")
        require(
            self.job_timeout_seconds + SETTLE_RESERVE_SECONDS < self.function_timeout_seconds,
            f"function_timeout_seconds {self.function_timeout_seconds} must be above job_timeout_seconds "
            f"{self.job_timeout_seconds} and the settle reserve of {SETTLE_RESERVE_SECONDS} together",
        )
        require(
            self.function_timeout_seconds <= LONGEST_FUNCTION_TIMEOUT_SECONDS,
            f"function_timeout_seconds {self.function_timeout_seconds} must be at most "
            f"{LONGEST_FUNCTION_TIMEOUT_SECONDS}, the limit of Lambda",
        )
        require(
            0 < self.queue_retention_days < DLQ_RETENTION_DAYS,
            f"queue_retention_days {self.queue_retention_days} must be from 1 to {DLQ_RETENTION_DAYS - 1}: "
            f"the dead-letter queue, which keeps {DLQ_RETENTION_DAYS} days, must keep messages longer",
        )
        require(
            1 <= self.batch_size <= LARGEST_BATCH, f"batch_size {self.batch_size} must be from 1 to {LARGEST_BATCH}"
        )
        require(
            0 <= self.batching_window_seconds <= LONGEST_BATCHING_WINDOW_SECONDS,
            f"batching_window_seconds {self.batching_window_seconds} must be from 0 to "
            f"{LONGEST_BATCHING_WINDOW_SECONDS}",
        )
        require(
            self.batch_size <= LARGEST_BATCH_AT_ONCE or self.batching_window_seconds > 0,
            f"batch_size {self.batch_size} needs batching_window_seconds of at least 1: without a window, Lambda takes "
            f"at most {LARGEST_BATCH_AT_ONCE} messages",
        )
        least_mb = WORKER_MB + PAYLOAD_MB * self.batch_size
        require(
            self.memory_mb >= least_mb,
            f"memory_mb {self.memory_mb} must be at least {least_mb} for batch_size {self.batch_size}: a worker reads "
            "the payloads of a batch at once",
        )
        require(self.late_seconds > 0, f"late_seconds {self.late_seconds} must be positive")
        require(
            self.max_concurrency >= LEAST_CONCURRENCY,
            f"max_concurrency {self.max_concurrency} must be at least {LEAST_CONCURRENCY}",
        )
        require(
            self.reserved_concurrency is None or self.reserved_concurrency >= self.max_concurrency,
            f"reserved_concurrency {self.reserved_concurrency} must not be below max_concurrency "
            f"{self.max_concurrency}: throttling would use up the receives of messages",
        )

    @property
    def visibility_timeout_seconds(self) -> int:
        return VISIBILITY_PER_TIMEOUT * self.function_timeout_seconds + self.batching_window_seconds

    @property
    def max_receive_count(self) -> int:
        """Receives before SQS itself moves a message. Well above the receives of all attempts: it must end no job."""
        return 2 * LARGEST_MAX_ATTEMPTS + 10
