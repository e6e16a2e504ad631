"""Runs one drill: break, detect, fix, verify. It counts its patience in evaluations of the alarms."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from demo.drills import runbook, speed
from demo.drills.alarm_watch import PAGE, AlarmWatch
from demo.drills.drill import Drill
from demo.drills.errors import DrillError, NotRecoveredError, SlowMachineError
from demo.drills.traffic import Replays, Traffic

#: Evaluations to wait for: the stage to be healthy, the alarm to fire, and the stage to be healthy again.
PATIENCE: Final = 60
#: The comments in a block that a drill obeys. Every other line is a command.
DEPLOY: Final = "# deploy "
RESOLVED: Final = "# when the alarm has resolved"
CAUSE_ENDED: Final = "# when the cause has ended"
REPEAT: Final = "# repeat until no alarm fires"
_SHOWN_FAULTS: Final = 3


@dataclass(frozen=True, slots=True)
class Report:
    """Times are in seconds."""

    name: str
    alarm: str
    #: From the incident to its alarm, or until `tidemill status` showed it.
    detected: float
    #: From the first command of the fix until the alarm resolved and every job had ended.
    recovered: float
    #: The number of accepted jobs.
    jobs: int
    replays: Replays
    #: The pages that fired besides the alarm. The drill allows each of them.
    other_pages: frozenset[str]


def run(drill: Drill, watch: AlarmWatch, fix: Sequence[str], *, patience: int = PATIENCE) -> Report:
    """`fix` holds the lines of the runbook. Raises DrillError, and NotRecoveredError if the fix does not help."""
    try:
        return _run(drill, watch, fix, patience=patience)
    finally:
        drill.end()


def _run(drill: Drill, watch: AlarmWatch, fix: Sequence[str], *, patience: int) -> Report:
    watched = drill.expected | {PAGE}
    _await_health(watch, watched, patience)
    _require_speed(drill, watch)
    # A page may have fired meanwhile.
    _await_health(watch, watched, patience)
    traffic = drill.traffic
    if not drill.submit():
        raise DrillError("the healthy stage accepts no job")
    watch.forget_pages()

    began = watch.now()
    values = drill.begin()
    if drill.submits_during:
        drill.submit()
    _await(
        watch,
        lambda: drill.alarm in watch.firing if drill.alarm else drill.shown(),
        patience,
        lambda: f"{_sign(drill)}; these fire: {_names(watch.firing)}",
        each=(drill.each_minute, drill.goes_on),
    )
    detected = watch.now()

    lines = [line if line.startswith("#") else runbook.filled(line, values) for line in fix]
    once, repeated = _parts(lines)
    for line in once:
        if line.startswith(RESOLVED):
            resolved, error = lambda: not watch.firing & watched, lambda: f"{_names(watch.firing)} still fire"
            _await(watch, resolved, patience, error, each=[drill.goes_on])
        elif line.startswith(CAUSE_ENDED):
            _await(watch, drill.cause_has_ended, patience, lambda: "the cause has not ended", each=[drill.goes_on])
        else:
            _execute(line, drill)
    later = drill.submit()
    _await(
        watch,
        lambda: not watch.firing & watched and traffic.ended(),
        patience,
        lambda: f"the stage did not recover: {_names(watch.firing)} fire; {_shown(traffic)}",
        each=(drill.goes_on, lambda: _execute_all(repeated, drill)),
        kind=NotRecoveredError,
    )
    recovered = watch.now()

    if other := watch.pages - drill.expected:
        fired = f"another page fired: {_names(other)}"
        _require_speed(drill, watch, after=f"{fired}; ")
        raise DrillError(fired)
    if list(traffic.faults()):
        raise DrillError(_shown(traffic))
    if unmet := list(drill.unmet(list(drill.stage.jobs(later).values()))):
        raise DrillError(", ".join(unmet))
    return Report(
        name=drill.name,
        alarm=drill.alarm or "none",
        detected=detected - began,
        recovered=recovered - detected,
        jobs=len(traffic),
        replays=traffic.replays(),
        other_pages=watch.pages - {drill.alarm},
    )


def _parts(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The lines to run once, and those to repeat until the stage has recovered."""
    first = next((number for number, line in enumerate(lines) if line.startswith(REPEAT)), len(lines))
    return lines[:first], lines[first + 1 :]


def _execute_all(lines: Sequence[str], drill: Drill) -> None:
    for line in lines:
        _execute(line, drill)


def _execute(line: str, drill: Drill) -> None:
    if line.startswith(DEPLOY):
        drill.deploy()
    else:
        drill.stage.execute(shlex.split(line, comments=True))


def _require_speed(drill: Drill, watch: AlarmWatch, *, after: str = "") -> None:
    """Raises SlowMachineError, whose text begins with `after`."""
    if too_slow := speed.slowness(drill.stage, watch):
        raise SlowMachineError(after + too_slow)


def _await_health(watch: AlarmWatch, watched: frozenset[str], patience: int) -> None:
    def error() -> str:
        return f"the stage is not healthy: {_names(watch.firing & watched)} fire"

    _await(watch, lambda: not watch.firing & watched, patience, error)


def _await(
    watch: AlarmWatch,
    holds: Callable[[], bool],
    patience: int,
    error: Callable[[], str],
    *,
    each: Sequence[Callable[[], None]] = (),
    kind: type[DrillError] = DrillError,
) -> None:
    for _ in range(patience):
        watch.next()
        if holds():
            return
        for call in each:
            call()
    raise kind(f"after {patience} evaluations, {error()}")


def _sign(drill: Drill) -> str:
    return f"the alarm {drill.alarm} did not fire" if drill.alarm else "`tidemill status` does not show the incident"


def _names(alarms: frozenset[str]) -> str:
    return ", ".join(sorted(alarms)) or "none"


def _shown(traffic: Traffic) -> str:
    faults = list(traffic.faults())
    more = f", and {len(faults) - _SHOWN_FAULTS} more" if len(faults) > _SHOWN_FAULTS else ""
    return (", ".join(faults[:_SHOWN_FAULTS]) or "all jobs have ended once") + more
