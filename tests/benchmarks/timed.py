"""CPU and wall time of all builds, in turn, so that a slow moment of the machine falls on each."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import quantiles
from typing import Any, Final

from tests.benchmarks.builds import WITH_GROUPED, Build, Tidemill, lambda_event, queued
from tests.benchmarks.loopback_client import Loopback

#: A batch of a lane.
JOBS: Final = 10
CPU_ROUNDS: Final = 40
WALL_ROUNDS: Final = 15
#: The time of a call while CPU time is measured. If all answers came at once, the threads of a batch would wait for
#: each other and not for AWS, which costs more CPU time than their work.
CPU_DELAY_SECONDS: Final = 0.005
#: The most that `POST /jobs/batch` takes.
SUBMITTED: Final = 100
#: Milliseconds of a call, and of the work of one job.
DELAYS: Final = (5, 20)
WORK: Final = (0, 50)


@dataclass
class Samples:
    by_name: dict[str, list[float]] = field(default_factory=dict)

    def time(self, name: str, clock: Callable[[], float], act: Callable[[], object]) -> None:
        began = clock()
        act()
        self.by_name.setdefault(name, []).append((clock() - began) * 1000)

    def lower_quartiles(self, per: int) -> dict[str, float]:
        """What else the machine does only adds to a time, so the lower quartile repeats better than the median."""
        return {name: quantiles(found, n=4)[0] / per for name, found in self.by_name.items()}


def cpu(aws: Loopback) -> dict[str, dict[str, float]]:
    """By build: milliseconds of CPU time per job of producer, publisher and consumer, in all threads."""
    samples = {build.name: Samples() for build in WITH_GROUPED}
    for build in WITH_GROUPED:
        build.work(queued(build, aws, {}, jobs=JOBS))
    for number in range(CPU_ROUNDS):
        for build in _in_turn(number):
            _cpu_of_batch(build, aws, samples[build.name])
    return {name: found.lower_quartiles(JOBS) for name, found in samples.items()}


def _cpu_of_batch(build: Build, aws: Loopback, samples: Samples) -> None:
    def submit() -> None:
        for _ in range(JOBS):
            build.submit({})

    aws.take(delay_seconds=CPU_DELAY_SECONDS)
    samples.time("producer", time.process_time, submit)
    taken = aws.take(delay_seconds=CPU_DELAY_SECONDS)
    samples.time("publisher", time.process_time, lambda: build.publish(taken))
    event = lambda_event([*taken["sent"], *aws.take(delay_seconds=CPU_DELAY_SECONDS)["sent"]])
    samples.time("consumer", time.process_time, lambda: build.work(event))


def wall(aws: Loopback) -> dict[str, dict[str, float]]:
    """By build: milliseconds of a batch of ten by delay of a call and work of a job, and of one submission."""
    samples = {build.name: Samples() for build in WITH_GROUPED}
    for delay in DELAYS:
        for number in range(WALL_ROUNDS):
            for build in _in_turn(number):
                for work in WORK:
                    payload = {"milliseconds": work}
                    event = queued(build, aws, payload, jobs=JOBS)
                    aws.take(delay_seconds=delay / 1000)
                    _timed(samples[build.name], f"batch, {delay} ms a call, {work} ms of work", build.work, event)
                _timed(samples[build.name], f"submission, {delay} ms a call", build.submit, {})
                inserted = aws.take(delay_seconds=delay / 1000)
                _timed(samples[build.name], f"publication, {delay} ms a call", build.publish, inserted)
                if isinstance(build, Tidemill):
                    aws.take(delay_seconds=delay / 1000)
                    name = f"submission of {SUBMITTED} in one batch, {delay} ms a call"
                    samples[build.name].time(name, time.perf_counter, partial(build.submit_batch, SUBMITTED))
                aws.take()
    return {name: found.lower_quartiles(1) for name, found in samples.items()}


def _timed(samples: Samples, name: str, act: Callable[[Mapping[str, Any]], None], argument: Mapping[str, Any]) -> None:
    samples.time(name, time.perf_counter, lambda: act(argument))


def _in_turn(number: int) -> tuple[Build, ...]:
    """No build is always the first of a round."""
    first = number % len(WITH_GROUPED)
    return WITH_GROUPED[first:] + WITH_GROUPED[:first]
