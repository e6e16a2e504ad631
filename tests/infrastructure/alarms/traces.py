"""Traces of metrics: the values of each metric by minute, which a seed and a course of events determine."""

import math
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from tests.infrastructure.alarms.installation import (
    CONCURRENCY,
    of_api,
    of_function,
    of_queue,
    ours,
    worker,
)
from tidemill.local.alarms import MetricKey, Series
from tidemill.metrics import Metric
from tidemill.names import Lane

HOUR: Final = 60
DAY: Final = 24 * HOUR
#: Submissions a minute by day, by lane. The nights are idle.
BUSY: Final = {Lane.CRITICAL: 6, Lane.DEFAULT: 10, Lane.BULK: 4}
FUNCTIONS: Final = ("Submit", "Query", "Control", "Publisher", "Wake", "Canary", "Tick", "Reconcile")
EXAMPLE: Final = ("ShortenerShorten", "ShortenerRedirect", "ShortenerStats")
LARGEST_BATCH: Final = 10
#: The metrics of an idle queue begin up to 15 minutes after it becomes active.
IDLE_QUEUE_MINUTES: Final = 15

Values = dict[int, list[float]]


@dataclass
class Trace:
    """Minute 0 is that of the creation of the alarms."""

    seed: int
    minutes: int
    #: By metric and minute.
    values: defaultdict[MetricKey, Values] = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def put(self, key: MetricKey, minute: int, *values: float) -> None:
        of = self.values[key]
        of[minute] = [*of.get(minute, ()), *values]

    def drop(self, key: MetricKey, *, after: int, until: int | None = None) -> None:
        """Drop the metric in these minutes: after the first, before the last."""
        self.values[key] = {
            minute: values
            for minute, values in self.values[key].items()
            if minute <= after or (until is not None and minute >= until)
        }

    def copy(self) -> "Trace":
        copy = Trace(self.seed, self.minutes)
        copy.values.update((key, dict(values)) for key, values in self.values.items())
        return copy

    def series(self) -> dict[MetricKey, Series]:
        return {key: Series(values, delay=self._delay(key)) for key, values in self.values.items() if values}

    def _delay(self, key: MetricKey) -> "Jitter":
        return Jitter(self.seed ^ hash_of(key))


@dataclass(frozen=True, slots=True)
class Jitter:
    """One or two minutes, which depend on the minute."""

    seed: int

    def __call__(self, minute: int) -> int:
        return 1 + (((minute + self.seed) * 2654435761) >> 16 & 1)


def hash_of(key: MetricKey) -> int:
    """The same in each process, as that of `hash` is not."""
    return sum(ord(letter) * (index + 1) for index, letter in enumerate(f"{key}"))


def healthy(seed: int, *, days: int) -> Trace:
    """Days with idle nights, spikes, deployments, single crashes and other single faults, after the first hour.

    In the first hour, the stack is new: the first calls come minutes after the alarms.
    """
    trace = Trace(seed, days * DAY)
    chance = trace.random
    spikes = {day * DAY + 10 * HOUR + chance.randrange(6 * HOUR) for day in range(days) if chance.random() < 0.3}
    deployments = {day * DAY + 9 * HOUR + chance.randrange(8 * HOUR) for day in range(days)}
    in_spike = {minute for spike in spikes for minute in range(spike, spike + 10)}
    in_deployment = {minute for deployment in deployments for minute in range(deployment, deployment + 3)}
    for minute in range(trace.minutes):
        missed = minute in deployments and chance.random() < 0.5
        _scheduler(trace, minute, missed=missed, deploys=any(minute - ago in in_deployment for ago in range(8)))
        busy = _load(minute) * (20 if minute in in_spike else 1)
        _submissions(trace, minute, busy)
        for lane, rate in BUSY.items():
            if jobs := _number(chance, rate * busy):
                _lane(trace, minute, lane, jobs, in_spike=minute in in_spike, slow=minute in in_deployment)
        if minute in spikes:
            _burst(trace, minute)
        _single_faults(trace, minute)
        trace.put(CONCURRENCY, minute, 5 + 20 * busy)
    return trace


def _load(minute: int) -> float:
    """0 in the first minutes and by night, 1 at noon."""
    hour = (minute / HOUR) % 24
    return 0.0 if minute < 10 or hour < 6 else math.sin(math.pi * (hour - 6) / 18)


def _number(chance: random.Random, mean: float) -> int:
    return max(0, round(chance.gauss(mean, math.sqrt(mean)))) if mean else 0


def _scheduler(trace: Trace, minute: int, *, missed: bool, deploys: bool) -> None:
    """A new schedule makes its first call up to a minute after its creation, or a whole interval after it.

    A deployment changes mappings and schedules.
    """
    if minute >= 2 and not missed:
        _call(trace, minute, "Wake")
        _call(trace, minute, "Canary")
        for lane in Lane:
            trace.put(ours("CanaryLatency", lane), minute, trace.random.uniform(300, 3_000))
    if minute >= 5 and minute % 5 == 0:
        _call(trace, minute, "Reconcile")
        # A pass begins each day and takes an hour.
        trace.put(ours(Metric.RECONCILE_AGE), minute, 60_000.0 * (minute % DAY + HOUR))
        trace.put(ours(Metric.DRIFTED), minute, float(deploys))
    if minute >= HOUR and minute % HOUR == 0:
        _call(trace, minute, "Tick")


def _submissions(trace: Trace, minute: int, busy: float) -> None:
    requests = _number(trace.random, 12 * busy)
    if requests:
        trace.put(of_api(), minute, *([0.0] * min(requests, 5)))
        trace.put(of_api("ShortenerApi"), minute, 0.0)
        for function in ("Submit", "Query", *EXAMPLE):
            _call(trace, minute, function, requests)


def _lane(trace: Trace, minute: int, lane: Lane, jobs: int, *, in_spike: bool, slow: bool) -> None:
    chance = trace.random
    trace.put(ours(Metric.SUBMITTED, lane), minute, float(jobs))
    trace.put(ours(Metric.SUCCEEDED, lane), minute, float(jobs))
    # In the minutes of a deployment, many jobs fail once.
    trace.put(ours(Metric.ATTEMPTS, lane), minute, *([3.0 if slow else 1.0] * jobs))
    longest = 25_000 if in_spike or slow else 2_000
    trace.put(ours(Metric.START_LATENCY, lane), minute, *(chance.uniform(50, longest) for _ in range(min(jobs, 20))))
    batches = math.ceil(jobs / LARGEST_BATCH)
    _call(trace, minute, worker(lane), batches)
    _call(trace, minute, "Publisher", batches)
    trace.put(of_function("IteratorAge", "Publisher"), minute, chance.uniform(50, 60_000 if slow else 2_000))
    queue = f"Lane{lane}Queue"
    trace.put(of_queue("ApproximateNumberOfMessagesVisible", queue), minute, float(jobs if in_spike else jobs // 2))
    age = {Lane.CRITICAL: 25, Lane.DEFAULT: 200, Lane.BULK: 3_000}[lane] if in_spike else 1
    trace.put(of_queue("ApproximateAgeOfOldestMessage", queue), minute, float(age))


def _burst(trace: Trace, minute: int) -> None:
    """A spike throttles for two minutes, until the services have scaled."""
    for throttled in (minute, minute + 1):
        trace.put(ours(Metric.WRITES_THROTTLED), throttled, 3.0)
        trace.put(of_function("Throttles", worker(Lane.CRITICAL)), throttled, 2.0)


def _call(trace: Trace, minute: int, function: str, number: float = 1.0) -> None:
    """Lambda writes `Errors` and `Throttles` with each call, mostly 0."""
    trace.put(of_function("Invocations", function), minute, float(number))
    trace.put(of_function("Errors", function), minute, 0.0)
    trace.put(of_function("Throttles", function), minute, 0.0)


def _single_faults(trace: Trace, minute: int) -> None:
    """Each about once in three days, and alone. None of them needs an operator."""
    chance = trace.random
    for happens in (_crash, _server_error, _lost_response, _late_start):
        if chance.random() < 1 / (3 * DAY):
            happens(trace, minute)


def _crash(trace: Trace, minute: int) -> None:
    trace.put(of_function("Errors", trace.random.choice([worker(Lane.DEFAULT), *FUNCTIONS])), minute, 1.0)


def _server_error(trace: Trace, minute: int) -> None:
    trace.put(of_api(), minute, 1.0)
    trace.put(ours(Metric.SUBMISSIONS_FAILED), minute, 1.0)


def _lost_response(trace: Trace, minute: int) -> None:
    trace.put(ours(Metric.UNAVAILABLE, Lane.DEFAULT), minute, 1.0)


def _late_start(trace: Trace, minute: int) -> None:
    trace.put(ours(Metric.START_LATENCY, Lane.CRITICAL), minute, 70_000.0)
