"""Why a job is not running: facts in, one reason and sentences out. Pure.

The document says most of it. `Facts` adds what the document cannot know: the head of its group, the use of its limit,
its lane, the work that publish owes, and the functions that nothing calls at present.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from shlex import quote
from typing import Final

from tidemill.application.explain.explain_breaker import parked_by_breaker
from tidemill.application.explain.explained_effects import effects
from tidemill.application.explain.explained_parts import look_ahead, so_far
from tidemill.application.explain.explained_time import reason_of_time, times
from tidemill.application.explain.explanation import Answer, Facts, Reason
from tidemill.application.time_text import moment
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, Trouble
from tidemill.domain.limits.limit_state import LimitState, earliest
from tidemill.domain.operations.overrides import Override
from tidemill.domain.states import State
from tidemill.domain.waiting.signal_answers import waits_for_signal
from tidemill.domain.waiting.waiting import Cause, Wait

_TROUBLES: Final[Mapping[Trouble | None, str]] = {
    Trouble.SLOW: "because a run took longer than the target",
    Trouble.THROTTLED: "because the downstream throttled",
    Trouble.TIMEOUT: "because a run timed out",
    Trouble.ERROR: "because a run failed",
}
_RECONCILE: Final = (
    "Reconcile sends it again when it is overdue by its limit; "
    "`tidemill reconcile --overdue-by 1` does so after a minute."
)


def explain(facts: Facts) -> Answer:
    job, now = facts.job, facts.now
    answer = _answer(facts)
    further = tuple(_further(facts)) if not job.state.terminal else ()
    until = answer.until if answer.until is None or answer.until > now else None
    return Answer(reason=answer.reason, sentences=(*answer.sentences, *further), until=until)


def _answer(facts: Facts) -> Answer:
    job, now = facts.job, facts.now
    match job.state:
        case State.SUCCEEDED | State.CANCELLED | State.EXPIRED:
            answer = _ended(facts)
        case State.DEAD:
            answer = _dead(facts)
        case State.RUNNING:
            answer = _running(facts)
        case State.WAITING:
            answer = _waiting(facts)
        case State.PARKED | State.QUEUED if _awaits(job, now):
            answer = _awaiting(facts)
        case State.PARKED:
            answer = _parked(facts)
        case _ if job.due and job.due > now:
            answer = _not_due(facts)
        case State.SCHEDULED:
            answer = _wake_late(facts)
        case State.QUEUED | State.RETRYING:
            answer = _ready(facts)
    return answer


def _ended(facts: Facts) -> Answer:
    job, now = facts.job, facts.now
    if job.state is State.EXPIRED:
        useful = f"it was of use until {moment(job.lifetime.useful_until, now)}, and its next run had not begun by then"
        return _said(Reason.ENDED, f"It expired {moment(job.finished_at, now)}: {useful}.")
    ended = "succeeded" if job.state is State.SUCCEEDED else "was cancelled"
    return _said(Reason.ENDED, f"It {ended} {moment(job.finished_at, now)}.", *effects(job, now))


def _dead(facts: Facts) -> Answer:
    job = facts.job
    blocks = (
        f" It blocks its group {job.group.key} until it is redriven or cancelled."
        if job.group.key and job.group.blocks
        else ""
    )
    return _said(
        Reason.DEAD,
        f"It died {moment(job.finished_at, facts.now)}: {job.death or 'no reason is known'}.{blocks}",
        f"`tidemill redrive {quote(job.id)}` gives it a fresh set of attempts.",
    )


def _running(facts: Facts) -> Answer:
    job, now = facts.job, facts.now
    if job.due and job.due > now:
        began = moment(job.lease.claimed_at, now)
        return _said(
            Reason.RUNNING,
            f"A worker has run it since {began}, as attempt {job.attempt}. Its lease ends {moment(job.due, now)}.",
            until=job.due,
        )
    return _said(
        Reason.LEASE_OVER,
        f"The lease of attempt {job.attempt} ended {moment(job.due, now)}, so its worker is presumed dead.",
        _stopped("work", facts)
        or "The message that started it returns to the lane when its visibility timeout ends. " + _RECONCILE,
    )


def _not_due(facts: Facts) -> Answer:
    """Queued, retrying or scheduled, with a time ahead."""
    job, now = facts.job, facts.now
    when = moment(job.due, now)
    via = ["Wake puts it on its lane up to five minutes before."] if job.state is State.SCHEDULED else []
    if job.state is State.SCHEDULED and (stopped := _stopped("wake", facts)):
        via = [stopped]
    reason, text = reason_of_time(job, when, now)
    return _said(reason, text, *via, until=job.due)


def _wake_late(facts: Facts) -> Answer:
    return _said(
        Reason.WAKE_LATE,
        f"Its time came {moment(facts.job.due, facts.now)}, and wake has not queued it yet.",
        _stopped("wake", facts) or f"Wake runs each minute. {_RECONCILE}",
    )


def _waiting(facts: Facts) -> Answer:
    group, head = facts.job.group.key, facts.head
    job = head.job if head else None
    if job is None or (job.state.terminal and not _blocks(job)):
        why = f"Job {head.job_id} at the head of group {group} has ended. " if head and head.job_id else ""
        return _said(
            Reason.GROUP_TURN,
            f"{why}The group {group} moves on as soon as publish reads that from the stream.",
            _owed(facts) or _stopped("publish", facts) or "Reconcile also moves groups on that were left behind.",
        )
    if _blocks(job):
        cancel = f"`tidemill cancel {quote(job.id)} --tenant {quote(job.tenant)}`"
        return _said(
            Reason.BLOCKED,
            f"The dead job {job.id} blocks the group {group}: {job.death}.",
            f"`tidemill redrive {quote(job.id)}` runs it again, and {cancel} gives it up.",
        )
    return _said(
        Reason.BEHIND_HEAD,
        f"Job {job.id} is at the head of the group {group}, and is {job.state}. Jobs of a group run one at a time.",
        f"{_distance(facts.job, job)} `tidemill explain {quote(job.id)}` says why that one has not ended.",
    )


def _blocks(job: Job) -> bool:
    return job.state is State.DEAD and job.group.blocks


def _distance(job: Job, head: Job) -> str:
    places = (job.group.sequence or 0) - (head.group.sequence or 0)
    return f"It is {places} {'place' if places == 1 else 'places'} behind the head."


def _parked(facts: Facts) -> Answer:
    job, now, state = facts.job, facts.now, facts.limit or LimitState()
    if job.wait and job.wait.cause is Cause.PAUSE:
        return _paused(facts, job.wait)
    if job.wait and job.wait.cause is Cause.TYPE:
        return _unloaded(facts, job.wait)
    if job.wait and job.wait.cause is Cause.BREAKER:
        return parked_by_breaker(facts, job.wait.key, place=_before(facts), wake_stopped=_stopped("wake", facts))
    wait, limit = job.wait, state.limit
    name = f"The {wait.line}" if wait else "Its limit"
    place = _before(facts)
    latest = f"It is released {moment(job.due, now)} at the latest."
    if limit and (slots := limit.slots(state.adapted)) is not None and len(state.taken(now)) >= slots:
        return _said(
            Reason.NO_SLOT,
            f"{name} has {_all_slots(slots)} in use.{_adapts(limit.adaptive, state.adapted, now)}{place}",
            f"The next run that ends, or wake, releases the first job of the line. {latest}",
            until=job.due,
        )
    if limit and limit.rate:
        state = state.under(limit.rate, now)
        if (begins := max(earliest(limit.rate, state.arrival), state.promised)) > now:
            rate = f"{limit.rate.count} in {limit.rate.period.total_seconds():g} s"
            return _said(
                Reason.NO_RATE,
                f"{name} lets {rate} start, and the next one {moment(begins, now)}.{place}",
                f"Wake releases the jobs of the line in order. {latest}",
                until=job.due,
            )
    return _said(
        Reason.LINE_MOVES,
        f"{name} has room.{place} Wake releases the first jobs of the line within a minute.",
        _stopped("wake", facts) or latest,
        until=job.due,
    )


def _awaits(job: Job, now: datetime) -> bool:
    """Whether it waits for a signal: parked, also by another version, or queued for the end of its wait."""
    if job.state is State.PARKED:
        return job.wait is not None and job.wait.alone
    return waits_for_signal(job) and job.due is not None and job.due > now


def _awaiting(facts: Facts) -> Answer:
    job, now = facts.job, facts.now
    awaited = job.signals.awaited
    if awaited is None:
        return _said(Reason.AWAITED, "Another version of the code made it wait.", until=job.due)
    if ahead := look_ahead(job, now):
        return _said(Reason.AWAITED, ahead, *filter(None, [_stopped("wake", facts)]), until=job.due)
    since, until = moment(awaited.since, now), moment(awaited.until, now)
    command = f"tidemill signal {quote(job.id)} {quote(awaited.name)} JSON --tenant {quote(job.tenant)}"
    return _said(
        Reason.AWAITED,
        f"It waits: {awaited.cause} {awaited.name} since {since}, until {until}.",
        _stopped("wake", facts) or f"`{command}` lets it run at once. Without it, it runs {until}.",
        until=job.due,
    )


def _unloaded(facts: Facts, wait: Wait) -> Answer:
    place = _before(facts)
    return _said(
        Reason.UNLOADED,
        f"The workers could not load the type {wait.key}, because a job file is broken.{place}",
        "Once fixed code is deployed, wake releases the jobs of the line in order, at a rate.",
        _stopped("wake", facts)
        or "The log lines `broken job file` of the workers name the file, the line and the error.",
        until=facts.job.due,
    )


def _before(facts: Facts) -> str:
    """A space and a sentence; empty if the line was not read."""
    number = facts.before_it
    if number is None:
        return ""
    if not number:
        return " It is the first of its line."
    return f" {number} {'job of its line is' if number == 1 else 'jobs of its line are'} before it."


def _all_slots(number: int) -> str:
    return "its only slot" if number == 1 else f"all its {number} slots"


def _adapts(bounds: Adaptive | None, adapted: Adapted | None, now: datetime) -> str:
    if bounds is None:
        return ""
    fell = ""
    if adapted and adapted.fell_at:
        why = _TROUBLES.get(adapted.why, "for a reason that only a newer version knows")
        fell = f", and was lowered last {moment(adapted.fell_at, now)}, {why}"
    return f" The number adapts between {bounds.floor} and {bounds.ceiling}{fell}."


def _paused(facts: Facts, wait: Wait) -> Answer:
    job, now, pause = facts.job, facts.now, facts.pause
    place = _before(facts)
    if pause is None:
        return _said(
            Reason.RESUMED,
            f"The pause {wait.key} has ended.{place} Wake releases the jobs of its line in order, at a rate.",
            _stopped("wake", facts) or f"It is released {moment(job.due, now)} at the latest.",
            until=job.due,
        )
    end = f"until {moment(pause.until, now)}" if pause.until else "until it is resumed"
    why = f": {pause.reason}" if pause.reason else ""
    return _said(
        Reason.PAUSED,
        f"{pause.target} is paused by {pause.by} since {moment(pause.since, now)}, {end}{why}.{place}",
        f"`tidemill resume {quote(str(pause.target))}` ends the pause.",
        until=pause.until,
    )


def _ready(facts: Facts) -> Answer:
    """Queued or retrying, and due."""
    job, lane = facts.job, facts.lane
    since = f"It has been ready since {moment(job.due, facts.now)}"
    if owed := _owed(facts):
        return _said(Reason.OWED, f"{since}. {owed}")
    if lane and lane.empty:
        if stopped := _stopped("publish", facts):
            return _said(Reason.PUBLISH_STOPPED, f"{since}. {stopped}")
        return _said(
            Reason.NO_MESSAGE,
            f"{since}, and the lane {job.lane} has no message: publish has not sent it yet, or it was lost.",
            _RECONCILE,
        )
    if stopped := _stopped("work", facts):
        return _said(Reason.LANE_STOPPED, f"{since}. {stopped}")
    if lane is None:
        return _said(Reason.READY, f"{since}. Its lane could not be read.")
    depth = f"its messages are {lane.waiting} waiting, {lane.delayed} delayed and {lane.in_flight} in flight"
    late = _stopped("publish", facts)
    return _said(
        Reason.ON_LANE,
        f"{since}, and waits for a worker of the lane {job.lane}: {depth}.",
        f"If its message was lost, it cannot be seen among them. {_RECONCILE}",
        *([late] if late else []),
    )


def _further(facts: Facts) -> Iterator[str]:
    """What also concerns a job that has not ended."""
    job, now = facts.job, facts.now
    if job.cancel.requested_at:
        runs = job.run_ends and job.due is not None and job.due > now
        ends = "the run ends at its next checkpoint" if runs else "the next worker ends it, and does not run it"
        yield f"A cancel was requested {moment(job.cancel.requested_at, now)}: {ends}."
    if job.nudges.count:
        last = moment(job.nudges.last_at, now)
        yield f"Reconcile has sent it again {times(job.nudges.count)} without a claim, the last time {last}."
    if job.lifetime.deadline:
        yield f"If no run begins by {moment(job.lifetime.deadline, now)}, it dies."
    if job.lifetime.useful_until:
        yield f"A run that would begin after {moment(job.lifetime.useful_until, now)} comes too late: it expires then."
    yield from so_far(job, now)
    for override in facts.overrides:
        yield _overridden(override, now)


def _overridden(override: Override, now: datetime) -> str:
    setting, option = override.setting, override.overridden.option
    why = f": {setting.reason}" if setting.reason else ""
    value = json.dumps(setting.value)
    end = f", until {moment(setting.until, now)}" if setting.until else ""
    whose = "its type" if override.overridden.limit is None else f"the {override.overridden.whose}"
    return f"{option} of {whose} is {value} by {setting.by} since {moment(setting.at, now)}{end}{why}."


def _owed(facts: Facts) -> str:
    owed = facts.owed
    if owed is None or owed.resent:
        return ""
    return (
        f"Publish could not do this at once, {moment(owed.since, facts.now)}: {owed.error}. "
        f"Wake tries it again {moment(owed.next_try, facts.now)}."
    )


_NOT_CALLED: Final[Mapping[str, str]] = {
    "publish": "Publish is not called, because its event source mapping is not enabled, so no message is sent.",
    "work": "The workers of this lane are not called, because their event source mapping is not enabled.",
    "wake": "Wake is not called, because its schedule is not enabled.",
}


def _stopped(verb: str, facts: Facts) -> str:
    """Empty if the function is called."""
    return f"{_NOT_CALLED[verb]} `tidemill status` shows the command." if verb in facts.stopped else ""


def _said(reason: Reason, *sentences: str, until: datetime | None = None) -> Answer:
    return Answer(reason=reason, sentences=sentences, until=until)
