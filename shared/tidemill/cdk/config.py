"""The configuration of a deployment, checked when it is created.

Imports no CDK and reads no environment: a test or a command can create a configuration without Node.
"""

import re
import sys
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from tidemill.application.operations.reconcile import sweep_share
from tidemill.application.passes.pass_state import PASS_INTERVAL
from tidemill.application.passes.table_pass import RESERVE
from tidemill.application.waiting.wake import LEAST_WAKE_TIME
from tidemill.cdk.lanes.lane_config import LONGEST_FUNCTION_TIMEOUT_SECONDS, LaneConfig
from tidemill.cdk.synth_errors import SettingError, SynthError, require, require_form
from tidemill.cost.aws_quotas import NEW_TABLE_WRITE_UNITS
from tidemill.domain.passes.pass_bounds import pass_duration
from tidemill.domain.time_constants import JOB_RETENTION_DAYS, SECOND
from tidemill.names import (
    AUDIT_RETENTION_DAYS,
    BATCH_PACKAGE,
    CANARY_PACKAGE,
    EVENT_PACKAGE,
    FLOW_PACKAGE,
    INDEX_SHARDS,
    LARGEST_INDEX_SHARDS,
    MIGRATION_PACKAGE,
    PAYLOAD_ITEM_BYTES,
    RECONCILE_INTERVAL_SECONDS,
    RECONCILE_READ_UNITS,
    WAKE_INTERVAL_SECONDS,
    Lane,
)

#: What the `app.py` of an application imports from here.
__all__ = ["Architecture", "LaneConfig", "SettingError", "StageConfig", "SynthError"]

#: Changes of jobs this old go to the failure queue. So a poison record blocks its shard no longer than this, and no
#: record expires in the stream, which keeps 24 hours, without an alarm.
OLDEST_RECORD_SECONDS: Final = 6 * 60 * 60
#: An HTTP API waits 30 s at most, so the response of a slower function is lost.
LONGEST_API_TIMEOUT_SECONDS: Final = 29
#: The maximum of `ParallelizationFactor` of a stream mapping.
#: https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html
LARGEST_PARALLELIZATION: Final = 10
#: The minimum of `payload_item_bytes`: one write unit. Below it an item is cheaper than a file.
LEAST_PAYLOAD_ITEM_BYTES: Final = 1024
#: The minimum of `reconcile_read_units`.
LEAST_READ_UNITS: Final = 10
#: The minimum of `wake_timeout_seconds`.
LEAST_WAKE_SECONDS: Final = LEAST_WAKE_TIME // SECOND
#: The retention times of CloudWatch Logs that are useful here.
LOG_RETENTIONS_DAYS: Final = (1, 3, 7, 14, 30, 60, 90, 180, 365)
#: The maximum of `metrics_by_type`: 1,010 metrics, with those of the other types.
MOST_MEASURED_TYPES: Final = 100
#: The newest runtime on which all tests of the engine have passed.
NEWEST_TESTED_PYTHON: Final = "3.13"
#: Supported Lambda runtimes for which `functions/requirements.txt` has wheels.
PYTHON_VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
#: Those for which Lambda has SnapStart.
#: https://docs.aws.amazon.com/lambda/latest/dg/snapstart.html
SNAP_START_PYTHON_VERSIONS: Final = ("3.12", "3.13", "3.14")

#: The minor version of the Python that runs the synth.
HOST_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


class Architecture(StrEnum):
    """In Lambda's spelling."""

    ARM64 = "arm64"
    X86_64 = "x86_64"


@dataclass(frozen=True, kw_only=True)
class StageConfig:
    """One deployment of the app."""

    stage: str
    #: Distinguishes two installations of a stage in one account.
    installation: str = ""
    lanes: tuple[LaneConfig, ...]
    #: Minor version of the Lambda runtime.
    python_version: str
    architecture: Architecture
    #: Whether Lambda starts each function from a snapshot that it takes when a version is published.
    snap_start: bool = False
    #: Packages that hold job types. The asset contains only these and the packages with a handler from `functions`.
    job_packages: tuple[str, ...]
    #: Tables, bucket, secrets and logs outlive the stack, and AWS refuses to delete the tables and the stacks.
    protected: bool = False
    #: Continuous backups of the tables, kept for 35 days.
    point_in_time_recovery: bool = True
    #: A host whose Python differs from the runtime cannot byte-compile. True: refuse. False: warn, and Lambda compiles.
    bytecode_required: bool = False
    #: Install wheels for this host, not for Lambda: the embedded AWS runs functions on the host.
    wheels_of_host: bool = False
    #: An API names a role by its name, as the embedded AWS does, and not by its unique id.
    callers_by_name: bool = False
    #: Whether alarms may compute a metric from others, and whether composites may combine alarms. The embedded AWS can
    #: do neither.
    metric_math: bool = True
    #: The times of the lanes are shortened, to watch failures. A type may name more time, and the lane's bounds it.
    short_timeouts: bool = False
    #: ARN of the stream of an existing jobs table, such as a restored one, which the stage then uses. Empty: the stack
    #: creates its own.
    jobs_stream: str = ""
    #: How often the jobs were restored from a backup. Functions act on messages of their own epoch only.
    epoch: int = 0
    #: How long an ended job can be read.
    job_retention_days: int = JOB_RETENTION_DAYS
    #: How long `tidemill audit` shows a command of an operator.
    audit_retention_days: int = AUDIT_RETENTION_DAYS
    #: How long users can fetch a file that a job wrote for them.
    export_retention_days: int = 30
    #: Whether tenants can list their jobs. It costs one more index write for each job.
    listing: bool = True
    #: Number of index partitions over which writes spread the jobs of one tenant, or of one kind. Each takes 1,000 new
    #: jobs a second. Every change is safe: reads query all partitions that a setting allows.
    index_shards: int = INDEX_SHARDS
    #: Write units a second that the jobs table and each of its indexes can take at once. 0: as DynamoDB has it, 4,000
    #: in a new table. AWS charges once for a higher number, and a table keeps it.
    #: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
    warm_write_units: int = 0
    #: Reconcile dispatches a live job again when it is overdue by this long.
    reconcile_limit_seconds: int = 3 * 60 * 60
    #: Read units a second that reconcile may take from the jobs table, for a pass over the whole table each day. The
    #: rate sets the duration of a pass, and not its price, which is half a unit for each 4 KB of the table.
    reconcile_read_units: int = RECONCILE_READ_UNITS
    #: The largest number of documents to expect in the jobs table. The alarm `LateReconcile` fires when reconcile needs
    #: longer than it would for so many documents of a kilobyte each.
    expected_documents: int = 100_000_000
    #: One run of reconcile, which continues the pass.
    reconcile_timeout_seconds: int = LONGEST_FUNCTION_TIMEOUT_SECONDS
    wake_timeout_seconds: int = WAKE_INTERVAL_SECONDS
    #: Whether a deployment shifts the calls of the functions to their new versions step by step, and back on an alarm.
    gradual_deployment: bool = False
    #: Whether a canary job takes the path of every job on each lane, every minute. Then its silence is a page.
    canary: bool = True
    #: Number of calls of wake in each interval. They run at the same time, and each wakes up to 400 jobs a second.
    wake_parts: int = 1
    #: Seconds within which a job of the lane `critical` should start. If more than a tenth start later, the governor
    #: raises the level of strain. None: only an operator sets the level.
    foreground_target_seconds: float | None = None
    log_retention_days: int = 30
    #: Whether log lines contain the messages and tracebacks of exceptions. A handler's may quote its payload.
    log_exception_text: bool = True
    #: The part of all jobs whose lines `accepted` and `dispatched` are written, from 0 to 1. Every other line is
    #: written, and so is every metric.
    log_sample_rate: float = 1
    #: Bytes of the largest payload that submit and the workers store as an item of the table; they store a larger one
    #: as a file. Every change is safe: a job names the place of its payload.
    payload_item_bytes: int = PAYLOAD_ITEM_BYTES
    #: Whether they compress such a payload if that saves write units. Its size is then the compressed one. Each version
    #: of the code that still runs must be able to read it.
    compress_payloads: bool = False
    #: Number of job types that have metrics of their own: the first ones by name. The others share the type `other`.
    #: 0: no type has any. Each type has nine metrics, and CloudWatch charges for each.
    metrics_by_type: int = 0
    #: Whether functions emit spans through OpenTelemetry.
    tracing: bool = False
    #: ARN of the version of a layer with OpenTelemetry's SDK and an exporter, for every function. Empty: the app's own
    #: requirements have them.
    tracing_layer: str = ""
    #: Timeout of a function behind an HTTP API.
    api_timeout_seconds: int = 10
    #: Requests per second and burst, for all callers of an API together.
    api_rate: int = 100
    api_burst: int = 200
    #: The same for all callers of a public route.
    open_rate: int = 50
    open_burst: int = 100
    #: Concurrency of a function behind a public route. It is reserved, so that visitors leave the rest of the account's
    #: concurrency to the other functions. None: no limit, as in a new account, which cannot reserve any.
    #: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
    open_concurrency: int | None = None
    publish_timeout_seconds: int = 30
    #: Concurrent batches of each shard of the jobs table's stream.
    stream_parallelization: int = LARGEST_PARALLELIZATION
    #: Issuer and audiences of the callers' tokens. Both empty: callers sign with SigV4.
    jwt_issuer: str = ""
    jwt_audience: tuple[str, ...] = ()
    #: Scopes of which a caller's token needs one. Empty: no scope is required.
    jwt_scopes: tuple[str, ...] = ()
    #: Addresses that receive pages and tickets. Empty: no mail.
    alarm_email: str = ""
    ticket_email: str = ""
    #: Whether DynamoDB reports the hottest keys of the jobs table and its indexes.
    contributor_insights: bool = False
    #: Name of an existing bucket that keeps the documents of ended jobs. Empty: no archive.
    archive: str = ""
    #: Where the functions read the runtime configuration: `table` or `appconfig`.
    configuration_source: str = "table"
    #: ARN or name of the permissions boundary of every role. Empty: no boundary.
    permissions_boundary: str = ""
    #: Qualifier of the bootstrap stack. Empty: CDK's default.
    qualifier: str = ""
    #: Address of the runbook. Alarms append the anchor of a heading.
    runbook_url: str = "docs/operations/runbook.md"
    #: Additional tags, as pairs of key and value.
    tags: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # In this order: the first check that fails is the one that is reported.
        self._require_names_and_functions()
        self._require_lanes()
        self._require_table()
        self._require_schedules()
        self._require_logs_and_payloads()
        self._require_api_and_publisher()
        self._require_tokens()

    def _require_names_and_functions(self) -> None:
        require_form("stage", self.stage, r"[a-z][a-z0-9]{0,19}", "a lower-case word")
        require_form("installation", self.installation, r"([a-z][a-z0-9]{0,19})?", "a lower-case word")
        require_form("qualifier", self.qualifier, r"[a-z0-9]{0,10}", "at most ten lower-case letters and digits")
        for email in ("alarm_email", "ticket_email"):
            require_form(email, getattr(self, email), r"([^@\s]+@[^@\s]+\.[^@\s]+)?", "an e-mail address")
        require_form(
            "permissions_boundary",
            self.permissions_boundary,
            r"(arn:[\w-]+:iam::(\d{12}|aws):policy/[\w+=,.@/-]+|[\w+=,.@-]*)",
            "the ARN or the name of a policy",
        )
        require_form(
            "tracing_layer",
            self.tracing_layer,
            r"(arn:[\w-]+:lambda:[\w-]+:\d{12}:layer:[\w-]+:\d+)?",
            "the ARN of the version of a layer",
        )
        require_form("configuration_source", self.configuration_source, r"table|appconfig", "table or appconfig")
        require_form("archive", self.archive, r"([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?", "the name of a bucket")
        require(not self.tracing_layer or self.tracing, "tracing_layer needs tracing=on")
        require(
            not self.gradual_deployment or self.metric_math,
            "gradual_deployment needs metric_math=on: most of its alarms compute a metric from others",
        )
        require_form("runbook_url", self.runbook_url, r"[^\s#]+", "an address without a fragment")
        require(
            self.python_version in PYTHON_VERSIONS,
            f"python_version {self.python_version!r} is not supported: use one of {', '.join(PYTHON_VERSIONS)}",
        )
        require(
            not self.snap_start or self.python_version in SNAP_START_PYTHON_VERSIONS,
            f"snap_start needs a python_version of {', '.join(SNAP_START_PYTHON_VERSIONS)}, not {self.python_version}",
        )

    def _require_lanes(self) -> None:
        require(
            [lane.name for lane in self.lanes] == list(Lane),
            f"lanes must be {', '.join(Lane)}, in this order: a job type may use any of them",
        )
        require(
            all(urgent.job_timeout_seconds <= lower.job_timeout_seconds for urgent, lower in pairwise(self.lanes)),
            "job_timeout_seconds of a less urgent lane must not be lower: a submission may choose a less urgent lane",
        )
        require(bool(self.job_packages), "job_packages is empty: name the packages that hold job types")

    def _require_table(self) -> None:
        require_form(
            "jobs_stream",
            self.jobs_stream,
            r"(arn:[\w-]+:dynamodb:[\w-]+:\d{12}:table/[\w.-]{3,255}/stream/[\w:.+-]+)?",
            "the ARN of a table's stream",
        )
        require(self.epoch >= 0, f"epoch {self.epoch} must not be negative")
        require(
            not self.epoch or bool(self.jobs_stream),
            "epoch needs jobs_stream: the table that the stack itself creates has epoch 0",
        )
        require(self.job_retention_days > 0, "job_retention_days must be positive")
        require(self.audit_retention_days > 0, "audit_retention_days must be positive")
        require(self.export_retention_days > 0, "export_retention_days must be positive")
        require(
            1 <= self.index_shards <= LARGEST_INDEX_SHARDS,
            f"index_shards {self.index_shards} must be from 1 to {LARGEST_INDEX_SHARDS}, which reads query",
        )
        require(
            self.warm_write_units == 0 or self.warm_write_units >= NEW_TABLE_WRITE_UNITS,
            f"warm_write_units {self.warm_write_units} must be 0 or at least {NEW_TABLE_WRITE_UNITS}, which a new "
            "table has",
        )

    def _require_schedules(self) -> None:
        slowest = max(lane.visibility_timeout_seconds for lane in self.lanes)
        require(
            slowest < self.reconcile_limit_seconds <= OLDEST_RECORD_SECONDS,
            f"reconcile_limit_seconds must be above {slowest}, after which the message of a crashed worker returns, "
            f"and at most {OLDEST_RECORD_SECONDS}, after which an unpublished change goes to the failure queue",
        )
        require(
            LEAST_WAKE_SECONDS <= self.wake_timeout_seconds <= WAKE_INTERVAL_SECONDS,
            f"wake_timeout_seconds must be at least {LEAST_WAKE_SECONDS}, so that owed work and parked jobs leave time "
            f"for scheduled jobs, and at most {WAKE_INTERVAL_SECONDS}: after that the next call of wake begins",
        )
        require(
            1 <= self.wake_parts <= self.index_shards,
            f"wake_parts {self.wake_parts} must be from 1 to index_shards {self.index_shards}: "
            "each call of wake needs a partition of its own",
        )
        require(
            self.reconcile_read_units >= LEAST_READ_UNITS,
            f"reconcile_read_units must be at least {LEAST_READ_UNITS}: one page of the table takes up to 128 units",
        )
        require(
            self.foreground_target_seconds is None or self.foreground_target_seconds > 0,
            f"foreground_target_seconds {self.foreground_target_seconds} must be positive",
        )
        require(self.expected_documents > 0, "expected_documents must be positive")
        require(
            0 < self.reconcile_timeout_seconds <= LONGEST_FUNCTION_TIMEOUT_SECONDS,
            f"reconcile_timeout_seconds must be from 1 to {LONGEST_FUNCTION_TIMEOUT_SECONDS}",
        )

    def _require_logs_and_payloads(self) -> None:
        require(
            self.log_retention_days in LOG_RETENTIONS_DAYS,
            f"log_retention_days {self.log_retention_days} is not supported: "
            f"use one of {', '.join(map(str, LOG_RETENTIONS_DAYS))}",
        )
        require(
            LEAST_PAYLOAD_ITEM_BYTES <= self.payload_item_bytes <= PAYLOAD_ITEM_BYTES,
            f"payload_item_bytes {self.payload_item_bytes} must be from {LEAST_PAYLOAD_ITEM_BYTES} "
            f"to {PAYLOAD_ITEM_BYTES}",
        )
        require(0 <= self.log_sample_rate <= 1, f"log_sample_rate {self.log_sample_rate} must be from 0 to 1")
        require(
            0 <= self.metrics_by_type <= MOST_MEASURED_TYPES,
            f"metrics_by_type {self.metrics_by_type} must be from 0 to {MOST_MEASURED_TYPES}",
        )

    def _require_api_and_publisher(self) -> None:
        require(
            0 < self.api_timeout_seconds <= LONGEST_API_TIMEOUT_SECONDS,
            f"api_timeout_seconds must be from 1 to {LONGEST_API_TIMEOUT_SECONDS}: an HTTP API waits at most 30 s",
        )
        for rate in ("api_rate", "api_burst", "open_rate", "open_burst"):
            require(getattr(self, rate) > 0, f"{rate} {getattr(self, rate)} must be positive")
        require(
            self.open_concurrency is None or self.open_concurrency > 0,
            f"open_concurrency {self.open_concurrency} must be positive: 0 would disable the public routes",
        )
        require(
            0 < self.publish_timeout_seconds <= LONGEST_FUNCTION_TIMEOUT_SECONDS,
            f"publish_timeout_seconds must be from 1 to {LONGEST_FUNCTION_TIMEOUT_SECONDS}",
        )
        require(
            1 <= self.stream_parallelization <= LARGEST_PARALLELIZATION,
            f"stream_parallelization {self.stream_parallelization} must be from 1 to {LARGEST_PARALLELIZATION}",
        )

    def _require_tokens(self) -> None:
        require_form("jwt_issuer", self.jwt_issuer, r"(https://[^\s?#]+)?", "an https address")
        require(
            all(re.fullmatch(r"[!#-\[\]-~]+", scope) for scope in self.jwt_scopes),
            "jwt_scopes must be visible ASCII without quotes and backslashes",
        )
        require(not self.jwt_scopes or bool(self.jwt_issuer), "jwt_scopes needs a jwt_issuer: SigV4 has no scopes")
        require(all(self.jwt_audience), "jwt_audience must not contain an empty name")
        require(
            bool(self.jwt_issuer) == bool(self.jwt_audience),
            "jwt_issuer and jwt_audience belong together: set both for tokens, or neither for SigV4",
        )

    @property
    def label(self) -> str:
        """Stage and installation. They distinguish the tags and metrics of deployments."""
        return "-".join(filter(None, (self.stage, self.installation)))

    @property
    def known_packages(self) -> tuple[str, ...]:
        """The packages with the job types of the stage and those of the engine."""
        of_the_engine = (MIGRATION_PACKAGE, EVENT_PACKAGE, BATCH_PACKAGE, FLOW_PACKAGE)
        return (*self.job_packages, *([CANARY_PACKAGE] if self.canary else []), *of_the_engine)

    @property
    def first_message_lanes(self) -> tuple[Lane, ...]:
        return tuple(lane.name for lane in self.lanes if lane.first_message_at_once)

    @property
    def longest_reconcile_age(self) -> timedelta:
        """The longest time between the begin of a complete pass of reconcile and the end of the next one."""
        run = timedelta(seconds=self.reconcile_timeout_seconds)
        return PASS_INTERVAL + pass_duration(
            documents=self.expected_documents,
            bytes_each=1024,
            units_per_second=self.reconcile_read_units,
            run=run - RESERVE - len(self.lanes) * sweep_share(run, len(self.lanes)),
            pause=timedelta(seconds=RECONCILE_INTERVAL_SECONDS),
        )

    @property
    def name(self) -> str:
        """Prefix of the stacks' names."""
        return f"Tidemill-{self.label}"
