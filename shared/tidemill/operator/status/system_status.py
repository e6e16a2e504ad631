"""The state of one installation at one moment: queues, resources, metrics and the attention index.

It reads no job but two samples of bounded size, so its price and its time do not grow with the number of jobs. What
cannot be read is reported in its place, and the rest is still read: the status is wanted most while something is down.
"""

from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS, POOL_SIZE
from tidemill.domain.admission.governor import Governed, in_force
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.operations.overrides import Override
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.pauses import Pause
from tidemill.dynamodb.admission.strain_item import DynamoGovernor
from tidemill.dynamodb.job_reader import JobReader
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.operations.attention_counts import AttentionCounts, Counted, ParkedJobs
from tidemill.dynamodb.passes import job_sample
from tidemill.dynamodb.passes.job_sample import Sample
from tidemill.names import Lane
from tidemill.operator.configuration_source import configuration_store
from tidemill.operator.deployments import function_versions
from tidemill.operator.deployments.deployment import Deployment, function_stacks, stacks_of
from tidemill.operator.drift import expected_state, resource_states
from tidemill.operator.drift.expected_resource import Expected
from tidemill.operator.drift.resource_states import ResourceState
from tidemill.operator.status import alarm_states, burn_rates, held_lines, throughput_metrics
from tidemill.operator.status.alarm_states import Alarms
from tidemill.operator.status.burn_rates import BurnRate
from tidemill.operator.status.held_lines import BreakerStatus, LoweredLimit
from tidemill.operator.status.throughput_metrics import Throughput
from tidemill.sqs.lanes import LaneUrls
from tidemill.sqs.queue_depth import Backlog, backlog, oldest_age

Value = TypeVar("Value")
#: The most dead jobs that are read, the newest first.
NEWEST_DEAD: Final = 50


@dataclass(frozen=True, slots=True)
class Unread:
    """This part could not be read."""

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane."""

    queue: Backlog
    #: None for an empty lane, and without a recent value.
    oldest: timedelta | None
    dlq_messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadJobs:
    """Their number, and the newest ones, the last death first: all of them if they are few."""

    counted: Counted
    newest: tuple[Job, ...] | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmsNow:
    """The alarms, and the numbers that those on burn rates judge."""

    alarms: Alarms
    burn_rates: tuple[BurnRate, ...] | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """A function whose calls reach another version than the deployed one."""

    function: str
    live: int
    deployed: int
    #: The version of the code that runs.
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """What operators have set and is in force, as the functions read it."""

    #: Each with the jobs in its line.
    pauses: tuple[tuple[Pause, Counted], ...]
    overrides: tuple[Override, ...]
    strain: Setting | None
    #: The settings that hold a breaker open or closed, by the name of the breaker.
    forced_breakers: dict[str, Setting]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemStatus:
    """Each part, or why it could not be read."""

    #: When it was read.
    at: datetime
    lanes: Mapping[str, LaneStatus | Unread]
    resources: tuple[ResourceState | Unread, ...] | Unread
    alarms: AlarmsNow | Unread
    #: None on an installation without metrics.
    throughput: Throughput | Unread | None
    scheduled: Counted | Unread
    dead: DeadJobs | Unread
    owed: Counted | Unread
    parked: ParkedJobs | Unread
    #: The pauses in force, each with the jobs that it has parked.
    pauses: tuple[tuple[Pause, Counted], ...] | Unread
    #: The type overrides in force.
    overrides: tuple[Override, ...] | Unread
    #: The level of strain that an operator has set; None without one.
    strain: Setting | Unread | None
    #: What the governor has set, as in a stage without one: level 0. An expired level is 0, too.
    governed: Governed | Unread
    #: Those that hold jobs back.
    breakers: tuple[BreakerStatus, ...] | Unread
    #: The adaptive limits below their ceiling, of the limit keys with the longest lines.
    lowered_limits: tuple[LoweredLimit, ...] | Unread
    #: The functions whose live version is not the deployed one.
    rolled_back: tuple[RolledBack, ...] | Unread
    sample: Sample | Unread

    @property
    def unread(self) -> dict[str, Unread]:
        """The parts that could not be read, by name."""
        parts: dict[str, object] = {
            **{f"lane {lane}": status for lane, status in self.lanes.items()},
            "resources": self.resources,
            **{
                f"resource {number}": state
                for number, state in enumerate(self.resources if isinstance(self.resources, tuple) else (), 1)
            },
            "alarms": self.alarms,
            "flow": self.throughput,
            **{
                name: getattr(self, name)
                for name in (
                    "scheduled",
                    "dead",
                    "owed",
                    "parked",
                    "pauses",
                    "overrides",
                    "strain",
                    "governed",
                    "breakers",
                    "lowered_limits",
                    "rolled_back",
                    "sample",
                )
            },
            "burn rates": self.alarms.burn_rates if isinstance(self.alarms, AlarmsNow) else None,
            "newest dead": self.dead.newest if isinstance(self.dead, DeadJobs) else None,
        }
        return {name: part for name, part in parts.items() if isinstance(part, Unread)}


def read(deployment: Deployment, *, now: datetime) -> SystemStatus:
    table = deployment.jobs_table
    counts = AttentionCounts(clients.dynamodb(), table=table)
    with ThreadPoolExecutor(POOL_SIZE) as pool:

        def begin(call: Callable[[], Value]) -> Future[Value | Unread]:
            return pool.submit(_attempt, call)

        lanes = {lane: begin(partial(_lane, urls, now)) for lane, urls in deployment.lanes.items()}
        resources = begin(partial(_resources, deployment))
        alarms = begin(partial(_alarms, deployment, now))
        throughput = begin(partial(_throughput, deployment, now))
        scheduled = begin(partial(counts.jobs, State.SCHEDULED))
        dead = begin(partial(_dead, counts, table, now))
        owed = begin(counts.owed)
        parked = begin(partial(counts.parked, DynamoLimits(clients.dynamodb(), table=table).lines))
        configured = begin(partial(_configured, counts, deployment, now))
        governed = begin(partial(_governed, table, now))
        rolled_back = begin(partial(_rolled_back, deployment.stage))
        sample = begin(partial(job_sample.read, clients.dynamodb(), table=table))
        settings = configured.result()
        lines = parked.result()
        breakers = begin(partial(_breakers, table, lines, settings))
        lowered = begin(partial(_lowered_limits, table, lines))
        return SystemStatus(
            at=now,
            lanes={lane: future.result() for lane, future in lanes.items()},
            resources=resources.result(),
            alarms=alarms.result(),
            throughput=throughput.result(),
            scheduled=scheduled.result(),
            dead=dead.result(),
            owed=owed.result(),
            parked=lines,
            pauses=settings if isinstance(settings, Unread) else settings.pauses,
            overrides=settings if isinstance(settings, Unread) else settings.overrides,
            strain=settings if isinstance(settings, Unread) else settings.strain,
            governed=governed.result(),
            breakers=breakers.result(),
            lowered_limits=lowered.result(),
            rolled_back=rolled_back.result(),
            sample=sample.result(),
        )


def _governed(table: str, now: datetime) -> Governed:
    found = DynamoGovernor(clients.dynamodb(), table=table).read()
    return replace(found, level=in_force(found, now=now))


def _configured(counts: AttentionCounts, deployment: Deployment, now: datetime) -> Configured:
    configuration = configuration_store(deployment).acting()
    return Configured(
        pauses=tuple((pause, counts.in_line(pause.target.line)) for pause in configuration.pauses(now)),
        overrides=tuple(configuration.overrides(now)),
        strain=configuration.strain(now),
        forced_breakers=configuration.forced_breakers(now),
    )


def _breakers(
    table: str, parked: ParkedJobs | Unread, settings: Configured | Unread
) -> tuple[BreakerStatus, ...] | Unread:
    if isinstance(parked, Unread):
        return parked
    if isinstance(settings, Unread):
        return settings
    found = held_lines.breakers(clients.dynamodb(), table=table, parked=parked, forced=settings.forced_breakers)
    return tuple(each for each in found if not each.quiet)


def _lowered_limits(table: str, parked: ParkedJobs | Unread) -> tuple[LoweredLimit, ...] | Unread:
    if isinstance(parked, Unread):
        return parked
    return held_lines.lowered_limits(clients.dynamodb(), table=table, parked=parked)


def _rolled_back(stage: str) -> tuple[RolledBack, ...]:
    named = [
        (key, stack.functions[key], int(version))
        for stack in function_stacks(clients.cloudformation(), stage)
        for key, version in stack.versions.items()
    ]
    client = clients.lambda_()
    with ThreadPoolExecutor(POOL_SIZE) as pool:
        found = list(pool.map(lambda each: function_versions.live(client, each[1]), named))
    return tuple(
        RolledBack(function=key, live=live, deployed=deployed, code=code)
        for (key, _, deployed), (live, code) in zip(named, found, strict=True)
        if live != deployed
    )


def _attempt(call: Callable[[], Value]) -> Value | Unread:
    try:
        return call()
    except (TidemillError, *AWS_ERRORS) as error:
        return Unread(error)


def _lane(urls: LaneUrls, now: datetime) -> LaneStatus:
    queue = backlog(clients.sqs(), urls.queue)
    return LaneStatus(
        queue=queue,
        # CloudWatch is minutes late: it still reports the age of a message that has left.
        oldest=oldest_age(clients.cloudwatch(), urls.queue, now=now) if queue.total else None,
        dlq_messages=backlog(clients.sqs(), urls.dead_letters).total,
    )


def stopped_functions(deployment: Deployment, lane: str) -> frozenset[str]:
    """The verbs of the stopped functions among publish, wake and the worker of this lane.

    Their mapping or schedule is off, and the template has it on. Raises what the AWS calls raise.
    """
    worker = "work" if lane == Lane.DEFAULT else f"work-{lane}"
    called: dict[str, bool] = {}
    for state in _resources(deployment, only={"publish", "wake", worker}):
        if isinstance(state, Unread):
            raise state.error
        verb = state.expected.function.partition("-")[0]
        # One schedule of wake does the work of all, later.
        called[verb] = called.get(verb, False) or not state.stopped
    return frozenset(verb for verb, is_called in called.items() if not is_called)


def _resources(deployment: Deployment, *, only: Container[str] | None = None) -> tuple[ResourceState | Unread, ...]:
    """Return the resources of the functions with these keys, or of all."""
    wanted = [
        expected
        for expected in expected_state.read(clients.cloudformation(), deployment.stack, deployment.functions)
        if only is None or expected.function in only
    ]
    read = resource_states.reader(wanted)

    def state(expected: Expected) -> ResourceState | Unread:
        found = read(expected)
        return Unread(found.error) if found.error else found

    with ThreadPoolExecutor(POOL_SIZE) as pool:
        return tuple(pool.map(state, wanted))


def _alarms(deployment: Deployment, now: datetime) -> AlarmsNow:
    stacks = stacks_of(clients.cloudformation(), deployment.stage)
    alarms = alarm_states.read(clients.cloudwatch(), stacks, page_topic=deployment.page_topic)
    return AlarmsNow(alarms=alarms, burn_rates=_attempt(lambda: burn_rates.read(clients.cloudwatch(), alarms, now=now)))


def _throughput(deployment: Deployment, now: datetime) -> Throughput | None:
    return throughput_metrics.read(
        clients.cloudwatch(),
        stage=deployment.stage,
        lanes={lane: urls.queue.rpartition("/")[2] for lane, urls in deployment.lanes.items()},
        publisher=deployment.functions.get("publish", ""),
        now=now,
    )


def _dead(counts: AttentionCounts, table: str, now: datetime) -> DeadJobs:
    found = counts.newest(State.DEAD, most=NEWEST_DEAD)
    jobs = _attempt(partial(JobReader(clients.dynamodb(), table=table).get_many, found.keys))
    if isinstance(jobs, Unread):
        return DeadJobs(counted=found.counted, newest=jobs)
    # The index lags, and keeps expired jobs for a while.
    dead = [job for job in jobs if job.state is State.DEAD and not job.lifetime.over(now)]
    dead.sort(key=lambda job: job.finished_at or job.created_at, reverse=True)
    return DeadJobs(counted=found.counted, newest=tuple(dead))
