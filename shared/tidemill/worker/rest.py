"""The rest of a worker between two batches: under strain it slows the lanes down that can wait.

A worker that rests takes no batch, and the mapping starts at most `max_concurrency` workers. So while a lane is busy,
a rest as long as the batch halves the jobs that it runs. It acts with the next batch, with no write. AWS documents no
time within which a change of the mapping's `MaximumConcurrency` acts:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from tidemill.domain.admission.strain import slowdown
from tidemill.names import Lane

#: After such a part of its rest, the worker looks whether the strain has ended.
_PART: Final = timedelta(seconds=1)
#: The time of the invocation that is left for its answer.
_ANSWER_RESERVE: Final = timedelta(seconds=1)


class Rested(Struct, frozen=True, kw_only=True):
    """For the log line. `strain` is the level when the rest began."""

    strain: int
    worked: timedelta
    rested: timedelta


def rest_after(
    worked: timedelta,
    *,
    lane: Lane,
    strain: Callable[[], int],
    time_left: Callable[[], timedelta],
    pause: Callable[[float], None],
) -> Rested | None:
    """Rest after a batch that took so long, within the time left of the invocation. None without a rest.

    Each job of the batch has ended. If the process is killed meanwhile, their messages come again and are refused.
    """
    first = level = strain()
    rested = timedelta(0)
    while (part := min(worked * (slowdown(lane, level=level) - 1) - rested, _PART, time_left() - _ANSWER_RESERVE)) > (
        timedelta(0)
    ):
        pause(part.total_seconds())
        rested += part
        level = strain()
    return Rested(strain=first, worked=worked, rested=rested) if rested else None
