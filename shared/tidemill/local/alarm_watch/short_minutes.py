"""Calls what schedules call, where a minute of the alarms is shorter than a real one.

The shortest rate of a schedule is a minute, so to alarms with shorter minutes each schedule would look silent.
"""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

_RATE: Final = re.compile(r"rate\((\d+) minutes?\)")
_MOST_SCHEDULES: Final = 32


class ScheduledCalls:
    """At most one call of each schedule runs at a time, so that a slow machine is not flooded with them."""

    def __init__(self, scheduler: Any, lambda_: Any) -> None:
        self._scheduler = scheduler
        self._lambda = lambda_
        self._pool = ThreadPoolExecutor(_MOST_SCHEDULES)
        self._running: dict[str, Future[Any]] = {}

    def call(self, *, minute: int) -> None:
        """Call the functions of the enabled schedules with a rate that are due in this minute."""
        for schedule in self._enabled():
            rate = _RATE.fullmatch(schedule["ScheduleExpression"])
            before = self._running.get(schedule["Name"])
            if rate and minute % int(rate[1]) == 0 and (before is None or before.done()):
                self._running[schedule["Name"]] = self._pool.submit(self._invoke, schedule["Target"])

    def _invoke(self, target: Mapping[str, Any]) -> Any:
        return self._lambda.invoke(FunctionName=target["Arn"], Payload=target.get("Input", "{}").encode())

    def _enabled(self) -> Iterator[Mapping[str, Any]]:
        for page in self._scheduler.get_paginator("list_schedules").paginate():
            for listed in page["Schedules"]:
                schedule = self._scheduler.get_schedule(Name=listed["Name"], GroupName=listed["GroupName"])
                if schedule["State"] == "ENABLED":
                    yield schedule
