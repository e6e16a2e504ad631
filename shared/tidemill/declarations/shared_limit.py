"""The limits of job types, for the files in `functions/jobs`: one that several types share, or that of one type.

PAYMENTS = SharedLimit("payments", concurrency_per_key=5, across_tenants=True)

@job_type("order.charge", payload=Order, limit=PAYMENTS)
def charge(order: Order, run: Run) -> None: ...

@job_type("order.refund", payload=Order, limit=PAYMENTS)
def refund(order: Order, run: Run) -> None: ...
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypedDict

from tidemill.declarations import declaration_checks as checks
from tidemill.domain.errors import DeclarationError
from tidemill.domain.limits.adaptive_limit import Adaptive
from tidemill.domain.limits.limits import Limit, Rate


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """One limit of several job types, such as those that call one downstream. Declare it once.

    The runs of all of them count together for each limit key, and their jobs wait in one line. `across_tenants` makes
    all tenants share it; with `per_lane`, each lane has the whole limit for itself.

    Raises `DeclarationError`.
    """

    name: str
    _: KW_ONLY
    concurrency_per_key: int | Adaptive | None = None
    rate_per_key: Rate | None = None
    across_tenants: bool = False
    per_lane: bool = False

    def __post_init__(self) -> None:
        checks.require_limit_name(self.name)
        checks.require_flag(across_tenants=self.across_tenants, per_lane=self.per_lane)
        if limit_from(self.concurrency_per_key, self.rate_per_key) is None:
            raise DeclarationError(
                f"the shared limit {self.name!r} bounds nothing: add concurrency_per_key or rate_per_key"
            )


class LimitArguments(TypedDict):
    """The fields of `JobType` about its limit."""

    limit: Limit | None
    limit_key: Callable[[Any], str] | None
    limit_spans_tenants: bool
    limit_per_lane: bool
    shared_limit: str | None


def limit_arguments(
    *,
    shared: SharedLimit | None,
    concurrency: int | Adaptive | None,
    rate: Rate | None,
    key: Callable[[Any], str] | None,
    across_tenants: bool,
    per_lane: bool,
) -> LimitArguments:
    """Read the options of `job_type` with these names. Raises `DeclarationError`."""
    checks.require_instance("limit", shared, SharedLimit)
    checks.require_flag(across_tenants=across_tenants, per_lane=per_lane)
    if key is not None:
        checks.require_callable("key", key, "payload")
    own = limit_from(concurrency, rate)
    if shared is not None and (own or across_tenants or per_lane):
        raise DeclarationError(
            f"the type has the shared limit {shared.name!r}, so concurrency_per_key, rate_per_key, across_tenants and "
            "per_lane belong into its SharedLimit: remove them here, or remove limit"
        )
    if shared is None and own is None and (key is not None or across_tenants or per_lane):
        raise DeclarationError(
            "key, across_tenants and per_lane need a limit: add concurrency_per_key, rate_per_key or limit, or remove "
            "them"
        )
    return LimitArguments(
        limit=limit_from(shared.concurrency_per_key, shared.rate_per_key) if shared else own,
        limit_key=key,
        limit_spans_tenants=shared.across_tenants if shared else across_tenants,
        limit_per_lane=shared.per_lane if shared else per_lane,
        shared_limit=shared.name if shared else None,
    )


def limit_from(concurrency: int | Adaptive | None, rate: Rate | None) -> Limit | None:
    """None without either."""
    adaptive = concurrency if isinstance(concurrency, Adaptive) else None
    fixed = None if isinstance(concurrency, Adaptive) else concurrency
    checks.require_whole_numbers(concurrency_per_key=fixed)
    checks.require_instance("rate_per_key", rate, Rate)
    if concurrency is None and rate is None:
        return None
    return Limit(concurrency=fixed, adaptive=adaptive, rate=rate)
