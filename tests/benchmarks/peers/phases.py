"""The phases of the load, and what is measured in each. The workers of one system run at a time."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from tests.benchmarks.peers import latency
from tests.benchmarks.peers.cpu import Meter
from tests.benchmarks.peers.load import Due, Load
from tests.benchmarks.peers.underway import Underway
from tidemill.local.wait import wait_until

RATE: Final = 15.0
CLEAN_SECONDS: Final = 15.0
BURST_JOBS: Final = 400
OVERLOAD: Final = 1.5
OVERLOAD_SECONDS: Final = 6.0
_OVERLOAD_TRIES: Final = 5
#: A system has fallen behind if the last outcome of the load comes this much later than its last job.
_BEHIND: Final = 1.25
KILL_SECONDS: Final = 15.0
#: From the first job that is due.
KILLS_AT: Final = (4.0, 8.0, 12.0)
#: From the last job that is due until the phase gives up. Procrastinate's recovery takes 35 seconds at most.
PATIENCE_SECONDS: Final = 40.0
_WARM_UP_JOBS: Final = 40
#: After the last run has ended, until its outcome is stored and its message is deleted.
_SETTLE_SECONDS: Final = 1.0
_SAMPLE_SECONDS: Final = 0.2

Found = dict[str, Any]


def clean(system: Underway, _: float) -> Found:
    return _measured(system, system.evenly(rate=RATE, seconds=CLEAN_SECONDS))


def burst(system: Underway, _: float) -> Found:
    return _measured(system, system.at_once(BURST_JOBS))


def overload(system: Underway, capacity: float) -> Found:
    """A burst understates the capacity of a system that polls, so the rate rises until the system falls behind."""
    for _ in range(_OVERLOAD_TRIES):
        rate = OVERLOAD * capacity
        found = _measured(system, system.evenly(rate=rate, seconds=OVERLOAD_SECONDS))
        if found["seconds"] > _BEHIND * OVERLOAD_SECONDS:
            break
        capacity = rate
    return found


def kills(system: Underway, _: float) -> Found:
    return _measured(system, system.evenly(rate=RATE, seconds=KILL_SECONDS), kills_at=KILLS_AT)


#: In this order: the burst measures the capacity, in jobs a second, for the overload.
PHASES: Final[dict[str, Callable[[Underway, float], Found]]] = {
    "clean": clean,
    "burst": burst,
    "overload": overload,
    "kills": kills,
}


def capacity_of(burst_found: Found) -> float:
    stored = burst_found["jobs"] - burst_found["unfinished"] - burst_found["refused"]
    return float(stored / burst_found["seconds"]) if stored else RATE


def run(phase: str, system: Underway, capacity: float) -> Found:
    """Start the workers, let them warm up, measure, and stop them."""
    system.running.workers.start()
    try:
        accepted, _ = system.producer.submit(system.at_once(_WARM_UP_JOBS))
        wait_until(lambda: _ended(system, accepted), PATIENCE_SECONDS, "the jobs of the warm-up to end")
        time.sleep(_SETTLE_SECONDS)
        return PHASES[phase](system, capacity)
    finally:
        system.running.workers.stop()


def _measured(system: Underway, plan: Sequence[Due], kills_at: Sequence[float] = ()) -> Found:
    running, meter = system.running, Meter(system.running.workers.pids)
    workers, service, trips = meter.sample(), running.service_seconds(), running.round_trips()
    load, producer = _under_load(system, plan, meter, kills_at)
    time.sleep(_SETTLE_SECONDS)
    workers, service, trips = (
        meter.sample() - workers,
        running.service_seconds() - service,
        running.round_trips() - trips,
    )
    happened = latency.outcome(plan, load.accepted, running.journal.read(), running.stored())
    per_job = 1000 / len(plan)
    return {
        **asdict(happened),
        "offered": _rate([due.at for due in plan]),
        "accepted": _rate(sorted(load.accepted.values())),
        "error": load.error,
        "kills": len(kills_at),
        "cpu": {"producer": producer * per_job, "workers": workers * per_job, "service": service * per_job},
        "round_trips": trips / len(plan),
    }


def _under_load(system: Underway, plan: Sequence[Due], meter: Meter, kills_at: Sequence[float]) -> tuple[Load, float]:
    """Return when all accepted jobs have ended, or the patience is over."""
    answers: list[tuple[Load, float]] = []
    submission = threading.Thread(target=lambda: answers.append(system.producer.submit(plan)))
    submission.start()
    left = [plan[0].at + seconds for seconds in kills_at]

    gives_up = plan[-1].at + PATIENCE_SECONDS
    while time.time() < gives_up or submission.is_alive():
        meter.sample()
        if left and time.time() >= left[0]:
            left.pop(0)
            system.running.workers.kill_one()
        if not submission.is_alive() and not left and _ended(system, answers[0][0]):
            break
        time.sleep(_SAMPLE_SECONDS)
    return answers[0]


def _ended(system: Underway, load: Load) -> bool:
    ends = system.running.journal.read().of("end")
    return all(number in ends for number in load.accepted)


def _rate(times: Sequence[float]) -> float:
    """Jobs a second between the first and the last."""
    return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else 0.0
