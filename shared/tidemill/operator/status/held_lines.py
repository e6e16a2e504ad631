"""What holds the lines of parked jobs back: breakers, and adaptive limits below their ceiling."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from tidemill.aws.clients import POOL_SIZE
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive
from tidemill.domain.operations.setting import Setting
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.operations.attention_counts import Counted, ParkedJobs

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The most limit keys whose numbers are read, those with the longest lines first. An item has up to 8 KB.
MOST_LIMITS: Final = 10
_NONE: Final = Counted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerStatus:
    """One breaker, with the jobs that wait for it."""

    breaker: Breaker
    #: The setting in force that forces it open or closed; None without one.
    forced: Setting | None
    parked: Counted

    @property
    def quiet(self) -> bool:
        """Whether it holds no job back."""
        return self.breaker.closed and self.forced is None and not self.parked.number


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredLimit:
    """A limit key with a line, of which fewer jobs may run at once than its ceiling says."""

    line: Line
    bounds: Adaptive
    adapted: Adapted
    parked: Counted


def breakers(
    client: "DynamoDBClient",
    *,
    table: str,
    parked: ParkedJobs,
    forced: Mapping[str, Setting],
    names: Iterable[str] = (),
) -> tuple[BreakerStatus, ...]:
    """Those with a line, those that are forced, and those with these names, by name.

    A breaker that opens parks a job, so each open one has a line. It costs half a read unit for each.
    """
    counts = {line.key: count for line, count in parked.lines if line.cause is Cause.BREAKER}
    counts |= {line.key: _NONE for line in parked.empty if line.cause is Cause.BREAKER}
    found = sorted({*counts, *forced, *names})
    with ThreadPoolExecutor(POOL_SIZE) as pool:
        read = list(pool.map(DynamoBreakers(client, table=table).read, found))
    return tuple(
        BreakerStatus(breaker=each, forced=forced.get(each.name), parked=counts.get(each.name, _NONE)) for each in read
    )


def lowered_limits(client: "DynamoDBClient", *, table: str, parked: ParkedJobs) -> tuple[LoweredLimit, ...]:
    """Return the lowered limits of the `MOST_LIMITS` limit keys with the longest lines."""
    limits = islice((each for each in parked.lines if each[0].cause is Cause.LIMIT), MOST_LIMITS)
    with ThreadPoolExecutor(POOL_SIZE) as pool:
        found = pool.map(lambda each: _lowered(DynamoLimits(client, table=table), *each), limits)
        return tuple(each for each in found if each)


def _lowered(limits: DynamoLimits, line: Line, parked: Counted) -> LoweredLimit | None:
    state = limits.look(line)
    bounds = state.limit.adaptive if state.limit else None
    if bounds is None or state.adapted is None or bounds.slots(state.adapted) >= bounds.ceiling:
        return None
    return LoweredLimit(line=line, bounds=bounds, adapted=state.adapted, parked=parked)
