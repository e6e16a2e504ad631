"""The figures of a deployment, checked before anything is made of them.

Knows neither CDK nor the environment: a configuration is a value that a test or a command can make without Node.
"""

import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from tidemill.names import LARGEST_MAX_ATTEMPTS, SETTLE_RESERVE_SECONDS, WAKE_INTERVAL_SECONDS, Lane

#: The most that SQS keeps a message. A letter's time counts from when its message was sent, not from when it died.
LETTER_RETENTION_DAYS: Final = 14
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html: room for retries of throttled batches.
VISIBILITY_PER_TIMEOUT: Final = 6
LONGEST_FUNCTION_TIMEOUT_SECONDS: Final = 900
#: Changes of jobs this old go to the failure queue: a poison record blocks its shard no longer, and the stream itself,
#: which forgets after 24 hours, loses nothing unseen.
OLDEST_RECORD_SECONDS: Final = 6 * 60 * 60
#: The patience of an HTTP API is 30 s: a function that may take longer answers nobody.
LONGEST_API_TIMEOUT_SECONDS: Final = 29
#: The least that `MaximumConcurrency` of a queue's mapping accepts.
LEAST_CONCURRENCY: Final = 2
#: The most that a mapping without a batching window accepts.
LARGEST_BATCH: Final = 10
#: What CloudWatch Logs accepts, as far as we have a use for it.
LOG_RETENTIONS_DAYS: Final = (1, 3, 7, 14, 30, 60, 90, 180, 365)
#: Lambda runtimes that are still given out and that `functions/requirements.txt` has wheels for.
PYTHON_VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")


#: The minor version of the Python that runs the synth.
HOST_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


class SynthError(Exception):
    """What stops a synth. Its text is one line for the person who ran it, and says what to do."""


class SettingError(SynthError):
    """A setting, or a figure of a stage, that cannot work."""


class Architecture(StrEnum):
    """As Lambda writes it."""

    ARM64 = "arm64"
    X86_64 = "x86_64"


@dataclass(frozen=True, kw_only=True)
class LaneConfig:
    """One lane: how long a run may take, how many run at once, when a backlog is late."""

    name: Lane
    function_timeout_seconds: int
    job_timeout_seconds: int
    #: Bound of the queue's mapping. Unlike reserved concurrency it throttles nobody, so it uses up no receives.
    max_concurrency: int
    #: Part of the account's concurrency set aside for the workers; None takes from what all functions share.
    reserved_concurrency: int | None = None
    memory_mb: int = 512
    batch_size: int = 10
    batching_window_seconds: int = 0
    queue_retention_days: int = 4
    #: A message older than this rings.
    late_seconds: int = 15 * 60

    def __post_init__(self) -> None:
        _require(self.job_timeout_seconds > 0, "job_timeout_seconds must be positive")
        _require(
            self.job_timeout_seconds + SETTLE_RESERVE_SECONDS < self.function_timeout_seconds,
            f"job_timeout_seconds {self.job_timeout_seconds} and the settle reserve of {SETTLE_RESERVE_SECONDS} "
            f"do not fit function_timeout_seconds {self.function_timeout_seconds}",
        )
        _require(
            self.function_timeout_seconds <= LONGEST_FUNCTION_TIMEOUT_SECONDS,
            f"function_timeout_seconds is above Lambda's {LONGEST_FUNCTION_TIMEOUT_SECONDS}",
        )
        _require(
            0 < self.queue_retention_days < LETTER_RETENTION_DAYS,
            f"queue_retention_days must be from 1 to {LETTER_RETENTION_DAYS - 1}: a letter outlives its message",
        )
        _require(1 <= self.batch_size <= LARGEST_BATCH, f"batch_size must be from 1 to {LARGEST_BATCH}")
        _require(self.batching_window_seconds >= 0, "batching_window_seconds must not be negative")
        _require(self.late_seconds > 0, "late_seconds must be positive")
        _require(self.max_concurrency >= LEAST_CONCURRENCY, f"max_concurrency must be at least {LEAST_CONCURRENCY}")
        _require(
            self.reserved_concurrency is None or self.reserved_concurrency >= self.max_concurrency,
            f"reserved_concurrency {self.reserved_concurrency} is below max_concurrency {self.max_concurrency}: "
            "throttled messages run out of receives",
        )

    @property
    def visibility_timeout_seconds(self) -> int:
        return VISIBILITY_PER_TIMEOUT * self.function_timeout_seconds + self.batching_window_seconds

    @property
    def max_receive_count(self) -> int:
        """Receives before SQS itself moves a message: never how a job dies, so well above what attempts use up."""
        return 2 * LARGEST_MAX_ATTEMPTS + 10


@dataclass(frozen=True, kw_only=True)
class StageConfig:
    """One deployment of the app."""

    stage: str
    #: Tells two installations of a stage in one account apart.
    installation: str = ""
    lanes: tuple[LaneConfig, ...]
    #: Minor version of the Lambda runtime.
    python_version: str
    architecture: Architecture
    #: Packages that hold job types. Beside the functions themselves, these are what of `functions` is shipped.
    job_packages: tuple[str, ...]
    #: Tables, secret and logs outlive the stack, and the tables and stacks refuse to be deleted.
    protected: bool = False
    #: Continuous backups of the tables, kept for 35 days.
    point_in_time_recovery: bool = True
    #: A host with another Python than the runtime cannot byte-compile: refuse, or warn and let Lambda compile.
    bytecode_required: bool = False
    #: Install what this very host needs instead of what Lambda needs: the embedded AWS runs functions on the host.
    wheels_of_host: bool = False
    #: How long a finished job can be read.
    job_retention_days: int = 30
    #: How long a file that a job wrote for people can be fetched.
    export_retention_days: int = 30
    #: Whether tenants can list their jobs: one index write more for each.
    listing: bool = True
    #: A live job this long overdue is dispatched once more.
    reconcile_limit_seconds: int = 3 * 60 * 60
    #: A round over the whole table.
    reconcile_timeout_seconds: int = LONGEST_FUNCTION_TIMEOUT_SECONDS
    wake_timeout_seconds: int = WAKE_INTERVAL_SECONDS
    log_retention_days: int = 30
    #: Seconds that a function behind an HTTP API may take.
    api_timeout_seconds: int = 10
    #: Requests per second, and the burst above it, for all callers of an API together.
    api_rate: int = 100
    api_burst: int = 200
    publish_timeout_seconds: int = 30
    #: Who gives out the tokens that callers bring, and for whom; both empty where callers sign with SigV4.
    jwt_issuer: str = ""
    jwt_audience: tuple[str, ...] = ()
    #: Who is mailed by the alarms; empty for nobody.
    alarm_email: str = ""
    #: ARN or name of a policy that bounds every role; empty for none.
    permissions_boundary: str = ""
    #: Qualifier of the bootstrap stack; empty for CDK's own.
    qualifier: str = ""
    #: Where the runbook is read; its headings are appended.
    runbook_url: str = "docs/operations/runbook.md"
    #: Tags beside our own, as pairs of key and value.
    tags: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _require_form("stage", self.stage, r"[a-z][a-z0-9]{0,19}", "a lower-case word")
        _require_form("installation", self.installation, r"([a-z][a-z0-9]{0,19})?", "a lower-case word")
        _require_form("qualifier", self.qualifier, r"[a-z0-9]{0,10}", "at most ten lower-case letters and digits")
        _require_form("alarm_email", self.alarm_email, r"([^@\s]+@[^@\s]+\.[^@\s]+)?", "an e-mail address")
        _require_form(
            "permissions_boundary",
            self.permissions_boundary,
            r"(arn:[\w-]+:iam::(\d{12}|aws):policy/[\w+=,.@/-]+|[\w+=,.@-]*)",
            "the ARN or the name of a policy",
        )
        _require_form("runbook_url", self.runbook_url, r"[^\s#]+", "an address without a fragment")
        _require(
            self.python_version in PYTHON_VERSIONS,
            f"python_version {self.python_version!r} is none of {', '.join(PYTHON_VERSIONS)}",
        )
        _require(
            [lane.name for lane in self.lanes] == list(Lane),
            f"lanes must be {', '.join(Lane)}, in this order: a job type may name any of them",
        )
        _require(
            all(urgent.job_timeout_seconds <= lower.job_timeout_seconds for urgent, lower in pairwise(self.lanes)),
            "job_timeout_seconds must not be less on a less urgent lane: a submission may lower the lane of its type",
        )
        _require(bool(self.job_packages), "job_packages must name the packages that hold job types")
        _require(self.job_retention_days > 0, "job_retention_days must be positive")
        _require(self.export_retention_days > 0, "export_retention_days must be positive")
        slowest = max(lane.visibility_timeout_seconds for lane in self.lanes)
        _require(
            slowest < self.reconcile_limit_seconds <= OLDEST_RECORD_SECONDS,
            f"reconcile_limit_seconds must be above {slowest}, when the message of a dead worker is back, and at most "
            f"{OLDEST_RECORD_SECONDS}, when a change that could not be published is set aside",
        )
        _require(
            0 < self.wake_timeout_seconds <= WAKE_INTERVAL_SECONDS,
            f"wake_timeout_seconds must be from 1 to {WAKE_INTERVAL_SECONDS}: then the next one begins",
        )
        _require(
            0 < self.reconcile_timeout_seconds <= LONGEST_FUNCTION_TIMEOUT_SECONDS,
            f"reconcile_timeout_seconds must be from 1 to {LONGEST_FUNCTION_TIMEOUT_SECONDS}",
        )
        _require(
            self.log_retention_days in LOG_RETENTIONS_DAYS,
            f"log_retention_days {self.log_retention_days} is none of {LOG_RETENTIONS_DAYS}",
        )
        _require(
            0 < self.api_timeout_seconds <= LONGEST_API_TIMEOUT_SECONDS,
            f"api_timeout_seconds must be from 1 to {LONGEST_API_TIMEOUT_SECONDS}: an HTTP API waits no longer",
        )
        _require(0 < self.api_rate <= self.api_burst, "api_rate must be positive and not above api_burst")
        _require(
            0 < self.publish_timeout_seconds <= LONGEST_FUNCTION_TIMEOUT_SECONDS,
            f"publish_timeout_seconds must be from 1 to {LONGEST_FUNCTION_TIMEOUT_SECONDS}",
        )
        _require_form("jwt_issuer", self.jwt_issuer, r"(https://[^\s?#]+)?", "an https address")
        _require(all(self.jwt_audience), "jwt_audience must not hold an empty name")
        _require(
            bool(self.jwt_issuer) == bool(self.jwt_audience),
            "jwt_issuer and jwt_audience go together: give both for tokens, or none for SigV4",
        )

    @property
    def label(self) -> str:
        """Stage and installation: what tells this deployment's tags and metrics from another's."""
        return "-".join(filter(None, (self.stage, self.installation)))

    @property
    def name(self) -> str:
        """What the names of the stacks begin with."""
        return f"Tidemill-{self.label}"


def _require(holds: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise SettingError(message)


def _require_form(setting: str, value: str, pattern: str, form: str) -> None:
    _require(re.fullmatch(pattern, value) is not None, f"{setting} {value!r} is not {form}")
