"""One world: the deployed app on a simulated AWS, with the faults of one seed."""

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any, Final, Self

from tests.simulation.deployment import CURSOR_KEY_SECRET, Deployment
from tests.simulation.world.async_invocations import AsyncInvocations
from tests.simulation.world.cloudwatch import CloudWatch
from tests.simulation.world.code_versions import Rollout
from tests.simulation.world.downstream import Downstream
from tests.simulation.world.dynamodb import DynamoDB
from tests.simulation.world.dynamodb_table import Record, Schema, Table
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.installed_patches import enter, leave
from tests.simulation.world.lambda_environments import Context, Function
from tests.simulation.world.lane_mapping import LaneMapping
from tests.simulation.world.s3 import S3
from tests.simulation.world.sdk import Sdk
from tests.simulation.world.secrets import Secrets
from tests.simulation.world.sqs import SQS
from tests.simulation.world.sqs_queue import Queue
from tests.simulation.world.statements import Statements
from tests.simulation.world.stream_mapping import StreamMapping
from tests.simulation.world.task_scheduler import Process, Scheduler
from tests.simulation.world.threads import Threads
from tests.simulation.world.throttled_items import ThrottledItems
from tests.simulation.world.trace import Change, Trace
from tests.simulation.world.transactions import Transactions
from tests.simulation.world.worked_batch import WorkedBatch

LONGEST_INDEX_LAG_MS: Final = 90_000
#: The service that jobs of the type `sim.dependent` call.
PAYMENTS: Final = "payments"


class World:
    """Each seed builds a new world."""

    def __init__(
        self,
        seed: int,
        deployment: Deployment,
        *,
        scheduler: Scheduler | None = None,
        faults: Faults | None = None,
        sdk: Callable[..., Sdk] = Sdk,
    ) -> None:
        """A caller may pass its own scheduler, faults and SDK to make every choice itself, as the small scope does."""
        self.seed = seed
        self.deployment = deployment
        self.scheduler = scheduler or Scheduler(Random(seed))
        self.random = self.scheduler.random
        self.faults = faults or Faults(self.random)
        self.trace = Trace()
        self.threads = Threads(self.scheduler)
        self.rollout = Rollout(self.scheduler, self.faults)
        self.dynamodb = DynamoDB(self.scheduler, self.faults)
        self.dynamodb.page_items = self.random.choice([2, 5, 1000])
        self.sqs = SQS(self.faults)
        self.s3 = S3(self.faults)
        self.cloudwatch = CloudWatch(self.scheduler, self.sqs)
        self.jobs = self._table(deployment.jobs_table())
        self.throttled_items = ThrottledItems(self.jobs, self.dynamodb, Transactions(self.dynamodb))
        self.sdk = sdk(
            self.scheduler,
            self.faults,
            self.trace,
            {
                "dynamodb": [self.throttled_items, self.dynamodb, Statements(self.dynamodb, seed)],
                "sqs": [self.sqs],
                "s3": [self.s3],
                "cloudwatch": [self.cloudwatch],
                "secretsmanager": [Secrets({CURSOR_KEY_SECRET: "simulated"})],
            },
        )
        #: By name, the services that handlers call.
        self.downstreams = {PAYMENTS: Downstream(self.scheduler, self.faults)}
        self.effects = self._table(Table("effects", Schema(names=("pk",), types=("S",))))
        self.jobs.watchers.append(self._changed)
        #: Planned submissions of callers, and runs of handlers.
        self.submissions: list[Any] = []
        self.runs: list[Any] = []
        #: Owner tokens of the runs whose handler was called, of the engine's own types as well.
        self.begun: set[str] = set()
        #: By type, each number of attempts that an operator may have set.
        self.overridden_attempts: dict[str, set[int]] = defaultdict(set)
        #: HTTP requests, also those that have a response.
        self.requests: list[Any] = []
        #: Called with each run when its handler ends.
        self.run_end_watchers: list[Callable[[Any], None]] = []
        #: Reports of workers: (milliseconds, process, report).
        self.reports: list[tuple[int, str, Any]] = []
        #: The same with the message: (reference, report).
        self.reports_by_message: list[tuple[Any, Any]] = []
        #: Runs whose time a worker declared over: (milliseconds, process, key of the job).
        self.expired_runs: list[tuple[int, str, str]] = []
        #: By process, when it released the limit slot of a stray handler, in milliseconds.
        self.slots_released: dict[str, int] = {}
        #: Batches of workers that were answered, and the ends of rests: (milliseconds, process).
        self.batches: list[WorkedBatch] = []
        self.rests: list[tuple[int, str]] = []
        #: Reports of publish, wake and reconcile: (milliseconds, process, report).
        self.use_case_reports: list[tuple[int, str, Any]] = []
        #: Called with the process and the telemetry of each invocation.
        self.telemetry_watchers: list[Callable[[Process, Any], None]] = []
        #: Tenant and id of jobs of which publish could not read a record.
        self.unread_changes: set[tuple[str, str]] = set()
        #: By key, when reconcile last reported an item as unreadable, in milliseconds.
        self.unreadable: dict[str, int] = {}
        self.lanes: dict[str, Queue] = {}
        self.mappings: dict[str, LaneMapping] = {}
        self.dead_letters: dict[str, Queue] = {}
        self.functions: dict[str, Function] = {}
        #: How far the wall clocks of all machines were set, by a play. Time itself goes on.
        self.wall_step_ms = 0
        #: By function, the asynchronous invocations by schedules and alarms.
        self.async_invocations: dict[str, AsyncInvocations] = {}
        self._deploy()

    def __enter__(self) -> Self:
        enter(self)
        return self

    def __exit__(self, *_error: object) -> None:
        self.scheduler.end()
        leave()

    def function(self, name: str, handler: Callable[[Any, Context], Any], timeout_seconds: int, **env: str) -> Function:
        made = Function(
            name,
            handler,
            timeout_seconds=timeout_seconds,
            environment={**self.deployment.environment(), **env},
            scheduler=self.scheduler,
            faults=self.faults,
            trace=self.trace,
            rollout=self.rollout,
        )
        self.functions[name] = made
        return made

    def process(self, name: str) -> Process:
        """A program outside Lambda, with the settings of the deployment and its present version of the code."""
        return Process(name, environment={**self.deployment.environment(), **self.rollout.code(name).environment})

    def log(self, who: str, what: str) -> None:
        self.trace.log(self.scheduler.now_ms, who, what)

    def _table(self, table: Table) -> Table:
        table._lag = self._index_lag
        self.dynamodb.add(table)
        return table

    def _index_lag(self) -> int:
        longest_ms = LONGEST_INDEX_LAG_MS if self.faults.occurs(Fault.INDEX_LAG) else 50
        return self.random.randint(0, longest_ms)

    def _deploy(self) -> None:
        deployment = self.deployment
        governing = Random(f"foreground {self.seed}").choice(deployment.foreground_targets)
        # Chosen for each: in a deployment, one may have the setting before the other.
        first_messages, compression = Random(f"first messages {self.seed}"), Random(f"compression {self.seed}")
        chosen = {
            verb: {
                **first_messages.choice(deployment.first_message_settings),
                **compression.choice(deployment.compression_settings),
            }
            for verb in ("submit", "publish", "work")
        }
        for lane in deployment.lanes:
            queue, dead_letters = self._queues(lane.name)
            worker = self.function(
                f"work-{lane.name}",
                deployment.handler("work"),
                lane.function_timeout_seconds,
                **deployment.worker_environment(lane),
                **chosen["work"],
                **governing,
            )
            self.mappings[lane.name] = LaneMapping(
                queue,
                worker,
                batch_size=lane.batch_size,
                max_concurrency=lane.max_concurrency,
                scheduler=self.scheduler,
                faults=self.faults,
                trace=self.trace,
            )
            self.lanes[lane.name], self.dead_letters[lane.name] = queue, dead_letters
        for verb in deployment.api_verbs:
            self.function(
                verb,
                deployment.handler(verb),
                deployment.stage.api_timeout_seconds,
                **chosen.get(verb, {}),
                **governing,
            )
        for verb in deployment.scheduled_verbs:
            self.async_invocations[verb] = AsyncInvocations(
                self.function(verb, deployment.handler(verb), deployment.timeout_seconds(verb), **governing),
                retries=deployment.async_retries(verb),
                oldest_seconds=deployment.async_oldest_seconds(verb),
                scheduler=self.scheduler,
                faults=self.faults,
                trace=self.trace,
            )
        publish = self.function(
            "publish", deployment.handler("publish"), deployment.stage.publish_timeout_seconds, **chosen["publish"]
        )
        self.failures = Queue("https://simulated.invalid/failures", self.scheduler, self.faults)
        self.stream = StreamMapping(
            self.jobs,
            publish,
            patterns=deployment.stream_patterns,
            batch_size=deployment.stream_batch_size,
            retries=deployment.stream_retries,
            oldest_seconds=deployment.stream_oldest_seconds,
            factor=Random(f"stream {self.seed}").choice(deployment.stream_factors),
            failures=self.failures,
            scheduler=self.scheduler,
            faults=self.faults,
            trace=self.trace,
        )

    def _queues(self, lane_name: str) -> tuple[Queue, Queue]:
        urls, lane = self.deployment.urls(lane_name), self.deployment.lane(lane_name)
        dead_letters = Queue(
            urls["dead_letters"], self.scheduler, self.faults, retention_ms=14 * 86_400_000, log=self.log
        )
        queue = Queue(
            urls["queue"],
            self.scheduler,
            self.faults,
            visibility_ms=lane.visibility_timeout_seconds * 1000,
            retention_ms=lane.queue_retention_days * 86_400_000,
            dead_letters=dead_letters,
            max_receives=lane.max_receive_count,
            log=self.log,
        )
        self.sqs.add(queue)
        self.sqs.add(dead_letters)
        return queue, dead_letters

    def _changed(self, record: Record) -> None:
        task = self.scheduler.current
        by = task.process.name if task else "DynamoDB"
        change = Change(record.at_ms, by, record.before, record.after)
        self.trace.changes.append(change)
        self.log(by, _described(change))


def _described(change: Change) -> str:
    before, after = change.before or {}, change.after or {}

    def short(item: Any) -> str:
        if not item:
            return "nothing"
        parts = [item.get("state", {}).get("S", "item")]
        parts += [
            f"{letter}{item[name]['N']}" for name, letter in (("generation", "g"), ("attempt", "a")) if name in item
        ]
        return " ".join(parts)

    return f"{change.key}: {short(before)} -> {short(after)}"


__all__ = ["LONGEST_INDEX_LAG_MS", "PAYMENTS", "World"]
