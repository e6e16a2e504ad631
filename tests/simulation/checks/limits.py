"""Checks of concurrency and rate limits, computed from the settings of each job type."""

from collections import defaultdict
from datetime import timedelta
from typing import Final

from tests.simulation.checks.document_changes import DocumentChangeChecks
from tests.simulation.checks.limit_keys import key_of_run, limit_of
from tests.simulation.checks.violation import require
from tests.simulation.jobs.handler_runs import HandlerRun
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.limits.limits import Rate

_MILLISECOND: Final = timedelta(milliseconds=1)
#: A job whose time has come may start so much sooner.
_SLACK_MS: Final = 1_000


class LimitChecks:
    """Checks the runs of one world at its end."""

    def __init__(self, world: World, documents: DocumentChangeChecks) -> None:
        self._world = world
        self._documents = documents

    def at_end(self) -> None:
        if self._world.faults.counted[Fault.CLOCK_FAR_OFF]:
            # Workers take and release slots by their own clocks.
            return
        by_key: dict[str, list[HandlerRun]] = defaultdict(list)
        for run in self._world.runs:
            if run.limit_key is not None and run.kind:
                by_key[key_of_run(run)].append(run)
        for key, runs in by_key.items():
            limit = limit_of(key)
            runs.sort(key=lambda run: run.began_ms)
            if limit and limit.concurrency:
                self._limits_hold(key, runs, limit.concurrency)
            if limit and limit.adaptive:
                self._limits_hold(key, runs, limit.adaptive.ceiling)
            if limit and limit.rate:
                self._rates_hold(key, runs, limit.rate)

    def _limits_hold(self, key: str, runs: list[HandlerRun], most: int) -> None:
        for index, run in enumerate(runs):
            still = still_running(self._world, runs[:index], run)
            others = ", ".join(one.job_id for one in still)
            require(
                len(still) < most, "concurrency limits hold", f"{key}: {others} still ran; the limit is {most}", run.key
            )

    def _rates_hold(self, key: str, runs: list[HandlerRun], rate: Rate) -> None:
        """In any period at most `count` runs begin, plus one for each interval in it.

        A run passes the limit between its claim and its beginning. So runs claimed after one time that have begun by
        another passed the limit in that period.
        """
        interval_ms = rate.interval / _MILLISECOND
        for first in runs:
            since_ms = self._claimed_ms(first)
            within = 0
            for run in runs:
                if self._claimed_ms(run) < since_ms:
                    continue
                within += 1
                period_ms = run.began_ms + LARGEST_SKEW_MS + min(_SLACK_MS, interval_ms / 2) - since_ms
                most = rate.count + period_ms // interval_ms
                what = f"{key}: {within} began within {period_ms} ms; the limit is {most:.0f}"
                require(within <= most, "rate limits hold", what, run.key)

    def _claimed_ms(self, run: HandlerRun) -> int:
        """0 if another worker had taken the job over by then, so that the time is unknown."""
        return run.claimed_ms if self._documents.claimed_by.get(run.owner) == run.by else 0


def still_running(world: World, before: list[HandlerRun], run: HandlerRun) -> list[HandlerRun]:
    """Return the ones of `before` that still ran when `run` began.

    Interrupted runs do nothing more, and runs that outlive their lease are fenced, so neither counts. The slot of a
    stray run is released as the last act before its process ends.
    """

    def released_ms(one: HandlerRun, ended_ms: int) -> int:
        return min(ended_ms, world.slots_released.get(one.by, ended_ms), one.lease_ends_ms)

    return [one for one in before if one.ended_ms is not None and run.began_ms < released_ms(one, one.ended_ms)]
