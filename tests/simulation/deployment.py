"""The simulated deployment: the settings of the `dev` stage, read from `stacks` without CDK."""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stacks.stages import STAGES
from tests.simulation.world.dynamodb_table import Index, Schema, Table
from tidemill import names
from tidemill.cdk.config import OLDEST_RECORD_SECONDS, StageConfig
from tidemill.cdk.events import stream_settings
from tidemill.cdk.functions.schedule_retries import FUNCTION_RETRIES, FUNCTION_SECONDS, PROMPT_SECONDS
from tidemill.cdk.lanes.lane_config import LaneConfig

JOBS_TABLE: Final = "jobs"
CURSOR_KEY_SECRET: Final = "cursor-key"
RETENTION_DAYS: Final = 1
_QUEUE_URL: Final = "https://simulated.invalid/{lane}{kind}"


@dataclass(frozen=True)
class Deployment:
    """The parts of the app that a world needs."""

    stage: StageConfig = field(default_factory=STAGES["dev"])
    #: Whether seeds choose settings of first messages and of the governor. Otherwise no world has them.
    varied: bool = True

    @property
    def lanes(self) -> Sequence[LaneConfig]:
        return self.stage.lanes

    @property
    def api_verbs(self) -> Sequence[str]:
        return ("submit", "query", "control")

    @property
    def scheduled_verbs(self) -> Sequence[str]:
        """Functions that EventBridge Scheduler invokes."""
        return ("wake", "reconcile", "tick")

    def async_retries(self, verb: str) -> int:
        """Retries of a scheduled function. `wake` has none, since its next run does the same work."""
        return 0 if verb == "wake" else FUNCTION_RETRIES

    def async_oldest_seconds(self, verb: str) -> int:
        return PROMPT_SECONDS if verb == "wake" else FUNCTION_SECONDS

    def timeout_seconds(self, verb: str) -> int:
        """The timeout of a scheduled function."""
        return int(getattr(self.stage, f"{verb}_timeout_seconds", self.stage.api_timeout_seconds))

    def lane(self, name: str) -> LaneConfig:
        return next(lane for lane in self.lanes if lane.name == name)

    def urls(self, lane: str) -> dict[str, str]:
        return {
            "queue": _QUEUE_URL.format(lane=lane, kind=""),
            "dead_letters": _QUEUE_URL.format(lane=lane, kind="-letters"),
        }

    def environment(self) -> dict[str, str]:
        return {
            names.Env.STAGE: self.stage.label,
            names.Env.JOBS_TABLE: JOBS_TABLE,
            names.Env.LANES: json.dumps({lane.name: self.urls(lane.name) for lane in self.lanes}),
            names.Env.JOB_PACKAGES: f"tests.simulation.jobs,{names.EVENT_PACKAGE},{names.BATCH_PACKAGE}",
            names.Env.RETENTION_DAYS: str(RETENTION_DAYS),
            names.Env.LISTING: "true",
            names.Env.FILES_BUCKET: "files",
            names.Env.PAYLOAD_ITEM_BYTES: str(self.stage.payload_item_bytes),
            names.Env.CURSOR_KEY_SECRET: CURSOR_KEY_SECRET,
            names.Env.JWT: "",
            names.Env.RECONCILE_LIMIT_SECONDS: str(self.stage.reconcile_limit_seconds),
            names.Env.RECONCILE_READ_UNITS: str(self.stage.reconcile_read_units),
        }

    def worker_environment(self, lane: LaneConfig) -> dict[str, str]:
        return {
            names.Env.LANES: json.dumps({lane.name: self.urls(lane.name)}),
            names.Env.JOB_TIMEOUT_SECONDS: str(lane.job_timeout_seconds),
        }

    def handler(self, verb: str) -> Callable[[Any, Any], Any]:
        handle: Callable[[Any, Any], Any] = importlib.import_module(f"tidemill.entrypoints.{verb}").handle
        return handle

    def jobs_table(self) -> Table:
        def index(name: str, partition: str, sort: str) -> Index:
            return Index(name=name, schema=Schema(names=(partition, sort), types=("S", "N")))

        return Table(
            JOBS_TABLE,
            Schema(names=(names.JOB_KEY,), types=("S",)),
            indexes=(
                index(names.ATTENTION_INDEX, names.ATTENTION_KEY, names.ATTENTION_SORT_KEY),
                index(names.LISTING_INDEX, names.LISTING_KEY, names.LISTING_SORT_KEY),
            ),
            ttl=names.TTL_ATTRIBUTE,
        )

    @property
    def wake_parts(self) -> Sequence[int]:
        """Numbers of parallel calls of `wake`. Each seed chooses one."""
        return (1, 3)

    @property
    def first_message_settings(self) -> Sequence[Mapping[str, str]]:
        """Settings of first messages. Each seed chooses one for submit, one for publish and one for the workers."""
        if not self.varied:
            return ({},)
        every: Mapping[str, str] = {names.Env.FIRST_MESSAGE_LANES: ",".join(lane.name for lane in self.lanes)}
        return ({}, every, every)

    @property
    def compression_settings(self) -> Sequence[Mapping[str, str]]:
        """Settings of payloads. Each seed chooses one for submit, one for publish and one for the workers."""
        return ({}, {}, {names.Env.COMPRESS_PAYLOADS: "true"}) if self.varied else ({},)

    @property
    def foreground_targets(self) -> Sequence[Mapping[str, str]]:
        """Seconds within which an urgent job should start. Each seed chooses one; with the lowest, each starts late."""
        if not self.varied:
            return [{}]
        targets: list[Mapping[str, str]] = [{names.Env.FOREGROUND_TARGET: seconds} for seconds in ("0.01", "2", "30")]
        return [{}, *targets]

    @property
    def stream_factors(self) -> Sequence[int]:
        """Parallelization factors of the stream's mapping. Each seed chooses one."""
        return (1, 2, self.stage.stream_parallelization)

    @property
    def stream_patterns(self) -> Sequence[Mapping[str, Any]]:
        return stream_settings.PATTERNS

    @property
    def stream_batch_size(self) -> int:
        return stream_settings.BATCH_SIZE

    @property
    def stream_retries(self) -> int:
        return stream_settings.RETRIES

    @property
    def stream_oldest_seconds(self) -> int:
        return OLDEST_RECORD_SECONDS
