"""The status as lines and tables: what is wrong comes first. Pure."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from tidemill.cli.blocks import RED, YELLOW, Block, Line, Table
from tidemill.cli.explain.job_report import error_class
from tidemill.cli.formatting import DASH, age, because, count, readable_time, set_by
from tidemill.cli.operations import status_alarms
from tidemill.cli.waiting.held_lines_report import breaker_lines, lowered_lines, shown_number
from tidemill.domain.admission.governor import GOVERNOR_SETTING, Governed
from tidemill.domain.admission.strain import slowdown
from tidemill.domain.job import Job
from tidemill.domain.operations.overrides import Override
from tidemill.domain.operations.setting import Setting
from tidemill.domain.waiting.pauses import Pause
from tidemill.dynamodb.operations.attention_counts import Counted, ParkedJobs
from tidemill.dynamodb.passes.job_sample import Sample
from tidemill.names import Lane
from tidemill.operator.deployments.deployment import Deployment
from tidemill.operator.drift.resource_states import MISSING, ResourceState
from tidemill.operator.status.system_status import AlarmsNow, LaneStatus, RolledBack, SystemStatus, Unread
from tidemill.operator.status.throughput_metrics import COUNTED, COUNTED_BY_TYPE, WINDOW, Throughput, TypeThroughput

#: The most lines of each ranking.
_RANKED: Final = 5
#: What stands still while a function is not called, by its verb.
_STANDS_STILL: Final[Mapping[str, str]] = {
    "publish": "accepted, retried and continued jobs are not sent to their lanes",
    "work": "the jobs of this lane do not start",
    "wake": "scheduled and parked jobs do not start",
    "tick": "jobs of this periodic type are not submitted",
    "reconcile": "lost messages are not found",
}


def report(status: SystemStatus, deployment: Deployment) -> Iterator[Block]:
    yield from status_alarms.firing(status.alarms, now=status.at)
    yield from _resources(status.resources)
    yield from _pauses(status.pauses)
    yield from _overrides(status.overrides)
    yield from _strain(status.strain)
    yield from _governed(status.governed)
    yield from breaker_lines(status.breakers)
    yield from lowered_lines(status.lowered_limits)
    yield from _rolled_back(status.rolled_back)
    if isinstance(status.alarms, AlarmsNow):
        yield status_alarms.summary(status.alarms.alarms, now=status.at)
        yield from status_alarms.burn_table(status.alarms.burn_rates)
    yield _lanes(status.lanes)
    yield from _throughput(status.throughput)
    yield Line(_counted(status.scheduled, "scheduled job"))
    yield from _parked(status.parked)
    yield from _dead(status)
    if isinstance(status.owed, Unread) or status.owed.number:
        yield Line(f"{_counted(status.owed, 'record')} of the stream owed by publish; wake does them", YELLOW)
    yield from _waiting(status.sample)
    if schedules := sorted(deployment.schedules.items()):
        yield Table(("PERIODIC TYPE", "SCHEDULE (UTC)"), schedules)


def _resources(resources: tuple[ResourceState | Unread, ...] | Unread) -> Iterator[Block]:
    if isinstance(resources, Unread):
        yield Line(f"Resources of the stack: not read: {resources.error}", RED)
        return
    for state in sorted(resources, key=lambda each: not (isinstance(each, ResourceState) and each.stopped)):
        if isinstance(state, Unread):
            yield Line(f"A resource of the stack was not read: {state.error}", RED)
        elif not state.as_expected:
            yield from _difference(state)
    kept = sum(isinstance(state, ResourceState) and state.as_expected for state in resources)
    yield Line(f"{kept} of {len(resources)} resources are as the template says")


def _difference(state: ResourceState) -> Iterator[Line]:
    expected = state.expected
    if state.stopped:
        how = "does not exist" if state.state == MISSING else f"is {state.state.lower()}"
        consequence = _STANDS_STILL.get(expected.function.partition("-")[0], "its function is not called")
        yield Line(f"STOPPED: the {expected.kind} of {expected.label} {how}, so {consequence}.", RED)
    else:
        what = "; ".join(map(str, state.differences)) or f"it is {state.state}"
        yield Line(f"The {expected.kind} of {expected.label} differs: {what}.", YELLOW)
    yield Line(f"  {state.remedy}", is_command=True)


def _pauses(pauses: tuple[tuple[Pause, Counted], ...] | Unread) -> Iterator[Line]:
    if isinstance(pauses, Unread):
        yield Line(f"Pauses: not read: {pauses.error}", RED)
        return
    for pause, waiting in pauses:
        end = f"until {readable_time(pause.until)}" if pause.until else "until it is resumed"
        new = ", new jobs refused" if pause.reject_new else ""
        since = f"by {pause.by} since {readable_time(pause.since)}, {end}"
        yield Line(
            f"PAUSED: {pause.target} {since}, {shown_number(waiting)} waiting{new}{because(pause.reason)}", YELLOW
        )
        yield Line(f"  tidemill resume {shlex.quote(str(pause.target))}", is_command=True)


def _overrides(overrides: tuple[Override, ...] | Unread) -> Iterator[Line]:
    if isinstance(overrides, Unread):
        yield Line(f"Overrides: not read: {overrides.error}", RED)
        return
    for override in overrides:
        setting = override.setting
        what = f"{override.overridden.option} of {override.overridden.whose} is {json.dumps(setting.value)}"
        yield Line(f"OVERRIDDEN: {what} {set_by(setting)}{because(setting.reason)}", YELLOW)
        yield Line(f"  tidemill config set {shlex.quote(setting.name)} --remove", is_command=True)


def _strain(strain: Setting | Unread | None) -> Iterator[Line]:
    if isinstance(strain, Unread):
        yield Line(f"Level of strain: not read: {strain.error}", RED)
    elif strain:
        what = f"level {strain.value} {set_by(strain)}, {_effect(strain.value)}"
        yield Line(f"STRAINED: {what}{because(strain.reason)}", YELLOW)
        yield Line(f"  tidemill config set {strain.name} --remove", is_command=True)


def _effect(level: int) -> str:
    slower = {lane: slowdown(lane, level=level) for lane in Lane}
    slowed = [f"{lane} {times} times slower" for lane, times in slower.items() if times > 1]
    return ", ".join(["new jobs of sheddable types refused", *slowed])


def _governed(governed: Governed | Unread) -> Iterator[Line]:
    if isinstance(governed, Unread):
        yield Line(f"The governor's level of strain: not read: {governed.error}", RED)
    elif governed.level:
        late = f"{governed.raised_by.late} of {governed.raised_by.total} jobs of the lane critical had started late"
        yield Line(
            f"STRAINED: level {governed.level} by the governor since {readable_time(governed.since)}, {late}; "
            f"{_effect(governed.level)}",
            YELLOW,
        )
        off = f"tidemill config set {GOVERNOR_SETTING} '{{\"off\": true}}'"
        yield Line(f"  {off}", is_command=True)


def _rolled_back(functions: tuple[RolledBack, ...] | Unread) -> Iterator[Line]:
    if isinstance(functions, Unread):
        yield Line(f"Live versions of the functions: not read: {functions.error}", RED)
        return
    by_code: dict[str, list[str]] = {}
    for each in functions:
        by_code.setdefault(each.code or DASH, []).append(f"{each.function} {each.live} (deployed: {each.deployed})")
    for code, versions in by_code.items():
        yield Line(f"ROLLED BACK to code {code}: {', '.join(versions)}", YELLOW)
    if functions:
        yield Line("  tidemill rollback --forward", is_command=True)


def _lanes(lanes: Mapping[str, LaneStatus | Unread]) -> Table:
    titles = ("LANE", "WAITING", "DELAYED", "IN FLIGHT", "OLDEST", "DLQ MESSAGES")
    return Table(titles, [_lane(name, lane) for name, lane in lanes.items()], numbers=range(1, len(titles)))


def _lane(name: str, lane: LaneStatus | Unread) -> tuple[str, ...]:
    if isinstance(lane, Unread):
        return (name, *["?"] * 5)
    queue = lane.queue
    numbers = map(str, (queue.waiting, queue.delayed, queue.in_flight))
    return (name, *numbers, age(lane.oldest), str(lane.dlq_messages))


def _throughput(throughput: Throughput | Unread | None) -> Iterator[Block]:
    if isinstance(throughput, Unread):
        yield Line(f"Metrics: not read: {throughput.error}", RED)
    elif throughput is None:
        yield Line("No metrics here: CloudWatch has none of this installation, so flows and burn rates are unknown.")
    else:
        titles = (f"LAST {age(WINDOW).upper()}", *(_title(each) for each in COUNTED))
        rows = [(lane, *(str(numbers[metric]) for metric in COUNTED)) for lane, numbers in throughput.lanes.items()]
        yield Table(titles, rows, numbers=range(1, len(titles)))
        lag = DASH if throughput.publish_lag is None else age(throughput.publish_lag)
        yield Line(f"publish lags behind by {lag}" + (" (it was not called)" if throughput.publish_lag is None else ""))
        yield from _types(throughput.types)


def _title(counted: str) -> str:
    return counted.removeprefix("Jobs").removeprefix("Messages").upper()


def _types(types: Mapping[str, TypeThroughput]) -> Iterator[Table]:
    """Those that fail most, and of equal ones those that wait longest."""
    ran = [(name, each) for name, each in types.items() if each.longest_wait is not None or any(each.counts.values())]
    ran.sort(key=lambda entry: (-entry[1].failures, -(entry[1].longest_wait or timedelta()), entry[0]))
    if ran:
        titles = (
            f"TYPE, LAST {age(WINDOW).upper()}",
            *(_title(each) for each in COUNTED_BY_TYPE),
            "LONGEST WAIT",
        )
        rows = [
            (name, *(str(each.counts[metric]) for metric in COUNTED_BY_TYPE), age(each.longest_wait))
            for name, each in ran[:_RANKED]
        ]
        yield Table(titles, rows, numbers=range(1, len(titles)))


def _parked(parked: ParkedJobs | Unread) -> Iterator[Block]:
    if isinstance(parked, Unread):
        yield Line(_counted(parked, "parked job"), RED)
        return
    lines = "" if not parked.lines else f" in {'more than ' * (not parked.all_lines)}{count(len(parked.lines), 'line')}"
    yield Line(_counted(parked.total, "parked job") + lines)
    if parked.lines:
        rows = [(str(line), shown_number(counted)) for line, counted in parked.lines[:_RANKED]]
        yield Table(("WAITS FOR", "PARKED"), rows, numbers=[1])


def _dead(status: SystemStatus) -> Iterator[Block]:
    dead = status.dead
    if isinstance(dead, Unread):
        yield Line(_counted(dead, "dead job"), RED)
        return
    jobs = () if isinstance(dead.newest, Unread) else dead.newest
    blocked = len(blocked_groups(jobs))
    text = f", {count(blocked, 'group')} blocked by a dead job" if blocked else ""
    if blocked and dead.counted.number > len(jobs):
        text += f" among the newest {len(jobs)}"
    yield Line(_counted(dead.counted, "dead job") + text, "bold" if dead.counted.number else "")
    if isinstance(dead.newest, Unread):
        yield Line(f"The newest dead jobs: not read: {dead.newest.error}", RED)
    elif jobs:
        yield _ranked(
            (f"OF THE {len(jobs)} NEWEST DEAD: TYPE", "ERROR", "TENANT"),
            Counter((job.type, error_class(job), job.tenant) for job in jobs),
        )
        yield Line("`tidemill dlq summary` groups the dead jobs by error, and `tidemill dlq list` lists them.")
    messages = any(isinstance(lane, LaneStatus) and lane.dlq_messages for lane in status.lanes.values())
    if dead.counted.number and not messages:
        yield Line(
            "Dead jobs exist, but every dead-letter queue is empty: their messages expired or were deleted.", YELLOW
        )


def blocked_groups(jobs: Iterable[Job]) -> set[tuple[str, str]]:
    return {(job.tenant, job.group.key) for job in jobs if job.group.key and job.group.blocks}


def _waiting(sample: Sample | Unread) -> Iterator[Block]:
    if isinstance(sample, Unread):
        yield Line(f"The sample of waiting jobs: not read: {sample.error}", RED)
        return
    items = f"all {sample.items} items" if sample.whole else f"a sample of {sample.items} items"
    yield Line(f"{count(sample.jobs, 'waiting job')} in {items} of the table")
    if sample.jobs:
        yield _ranked(("WAITING TYPE",), Counter({(name,): number for name, number in sample.types.items()}))
        yield _ranked(("WAITING TENANT",), Counter({(name,): number for name, number in sample.tenants.items()}))


def _ranked(titles: tuple[str, ...], numbers: Counter[tuple[str, ...]]) -> Table:
    rows = [(*names, str(number)) for names, number in numbers.most_common(_RANKED)]
    return Table((*titles, "JOBS"), rows, numbers=[len(titles)])


def _counted(counted: Counted | Unread, noun: str) -> str:
    if isinstance(counted, Unread):
        return f"unknown number of {noun}s"
    return ("" if counted.exact else "more than ") + count(counted.number, noun)
