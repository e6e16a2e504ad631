"""What a file in `functions/jobs` imports: the decorator, the run that it is given, and what it may return or raise.

class Welcome(BaseModel):
    address: str

@job_type("mail.welcome", payload=Welcome, max_attempts=5)
def welcome(payload: Welcome, run: Run) -> None: ...
"""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel

from tidemill.application.job_types import JobType, Run
from tidemill.domain.limits import Limit, Rate
from tidemill.domain.retry import DEFAULT_BACKOFF_CAP_SECONDS, RetryPolicy
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.names import Lane
from tidemill.payload_model import parser

#: The bucket keeps the file of a large payload for three times as long.
LONGEST_RETENTION_DAYS: Final = LONGEST_SPAN.days

Payload = TypeVar("Payload", bound=BaseModel)


def job_type(
    name: str,
    *,
    payload: type[Payload],
    lane: Lane = Lane.DEFAULT,
    max_attempts: int = 8,
    backoff_seconds: float = 2.0,
    backoff_cap_seconds: float = DEFAULT_BACKOFF_CAP_SECONDS,
    max_hops: int = 1_000,
    timeout_seconds: float | None = None,
    retention_days: float | None = None,
    on_dead: Literal["skip", "block"] = "skip",
    concurrency_per_key: int | None = None,
    rate_per_key: Rate | None = None,
    key: Callable[[Payload], str] | None = None,
    across_tenants: bool = False,
    unique_seconds: float | None = None,
    schedule: str | None = None,
) -> Callable[[Callable[[Payload, Run], Any]], JobType]:
    """Declare a job type. The handler is called with the payload as its model and the run it is in.

    What it returns is the job's result and must be JSON of at most 32 KiB, or `Done` for effects and follow-up jobs
    that commit with the success, `Snooze`, `Continue`, `GiveUp` or `Cancelled`. `PermanentJobError` ends the job at
    once, and `RetryAfter` sets its own delay; any other exception means another attempt after a random delay of at
    most `backoff_seconds`, a ceiling that doubles with each attempt up to `backoff_cap_seconds`.

    `max_hops` bounds snoozes, continuations and chains of follow-up jobs. A run may take `timeout_seconds`, and no
    longer than its lane allows. A finished job is kept for `retention_days`, at most 366. When a job dies at the head
    of its group, the group goes on (`skip`) or stands until somebody redrives or cancels it (`block`). Of the jobs with
    the same `key` (a text made from the payload; without one, all jobs of the type), at most `concurrency_per_key`
    run at once, and no more often than `rate_per_key`: of each tenant, or with `across_tenants` of all together. With
    `unique_seconds`, the same payload makes one job in each such period. `schedule` has the clock submit one with an
    empty payload: `rate(1 hour)` or `cron(0 3 * * ? *)`, written out here, since the stack reads it from the source.
    """
    retry = RetryPolicy(
        max_attempts=max_attempts,
        backoff_seconds=backoff_seconds,
        backoff_cap_seconds=backoff_cap_seconds,
        max_hops=max_hops,
    )
    bounded = concurrency_per_key is not None or rate_per_key is not None
    if (key is not None or across_tenants) and not bounded:
        raise ValueError("key and across_tenants say for whom limits count, and no limit is given")
    if schedule is not None and unique_seconds is not None:
        raise ValueError("a schedule submits one job each time as it is, so unique_seconds has nothing to say")

    def declare(handler: Callable[[Payload, Run], Any]) -> JobType:
        return JobType(
            name=name,
            lane=lane,
            retry=retry,
            parse=parser(payload),
            handler=handler,
            timeout=_positive("timeout_seconds", timeout_seconds, 1),
            retention=_positive("retention_days", retention_days, 86_400, at_most=LONGEST_RETENTION_DAYS),
            blocks=on_dead == "block",
            limit=Limit(concurrency=concurrency_per_key, rate=rate_per_key) if bounded else None,
            limit_key=key,
            limit_spans_tenants=across_tenants,
            unique=_positive("unique_seconds", unique_seconds, 1),
            schedule=schedule,
        )

    return declare


def _positive(name: str, value: float | None, unit_seconds: int, *, at_most: float = math.inf) -> timedelta | None:
    if value is not None and not 0 < value <= at_most:
        raise ValueError(f"{name} is {value}; it must be positive and at most {at_most}")
    return None if value is None else timedelta(seconds=value * unit_seconds)
