"""Why a job that waits for the breaker of its downstream is not running."""

from tidemill.application.explain.explanation import Answer, Facts, Reason
from tidemill.application.time_text import moment
from tidemill.domain.breakers.breaker import Breaker, BreakerState
from tidemill.domain.breakers.breaker_settings import forced_state
from tidemill.domain.operations.setting import Setting


def parked_by_breaker(facts: Facts, name: str, *, place: str, wake_stopped: str) -> Answer:
    """Explain a job that is parked in the line of this breaker. `place` says how many are before it."""
    breaker, job, now = facts.breaker, facts.job, facts.now
    if facts.forced:
        return _forced(facts, facts.forced, name, place=place)
    latest = f"It is released {moment(job.due, now)} at the latest."
    if breaker is None or breaker.closed:
        closed = f"The breaker {name} has closed.{place} The jobs of its line start in order, at a rate that grows."
        return Answer(
            reason=Reason.BREAKER_CLOSED, sentences=tuple(filter(None, (closed, wake_stopped, latest))), until=job.due
        )
    opened = f"The breaker {name} is {breaker.state} since {moment(breaker.since, now)}. {_next_probe(facts, breaker)}"
    error = f"Its last failure was {breaker.last_error}." if breaker.last_error else ""
    after = "Once a probe succeeds, the jobs of its line start in order, at a rate that grows."
    return Answer(
        reason=Reason.BREAKER_OPEN,
        sentences=tuple(filter(None, (f"{opened}{place}", error, after, wake_stopped, latest))),
        until=job.due,
    )


def _forced(facts: Facts, forced: Setting, name: str, *, place: str) -> Answer:
    """An operator holds the jobs back, or lets them go."""
    closed = forced_state(name, forced.value) is BreakerState.CLOSED
    why = f": {forced.reason}" if forced.reason else ""
    since = moment(forced.at, facts.now)
    return Answer(
        reason=Reason.BREAKER_CLOSED if closed else Reason.BREAKER_OPEN,
        sentences=(
            f"{forced.by} has forced the breaker {name} {forced.value['force']} since {since}{why}.{place}",
            f"`tidemill config set {forced.name} --remove` ends that.",
            f"It is released {moment(facts.job.due, facts.now)} at the latest.",
        ),
        until=facts.job.due,
    )


def _next_probe(facts: Facts, breaker: Breaker) -> str:
    if breaker.probe is None:
        return "Wake elects the job of the next probe."
    _tenant, job_id = breaker.probe
    return f"The next probe is {moment(breaker.probe_at, facts.now)}, by job {job_id}."
