"""The decorator that declares a job type, for the files in `functions/jobs`.

class Welcome(BaseModel):
    address: str

@job_type("mail.welcome", payload=Welcome, max_attempts=5)
def welcome(payload: Welcome, run: Run) -> None: ...
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

from tidemill.application.attempt.run import Run
from tidemill.application.declarations import noted
from tidemill.application.job_types import JobType
from tidemill.application.submission.validation import SHORTEST_PERIOD
from tidemill.declarations import declaration_checks as checks
from tidemill.declarations.batch_handler import require_batch, require_handler
from tidemill.declarations.breaker import Breaker, policies
from tidemill.declarations.payload_model import parser
from tidemill.declarations.shared_limit import SharedLimit, limit_arguments
from tidemill.domain.admission.strain import Importance
from tidemill.domain.attempt.retry import DEFAULT_BACKOFF_CAP_SECONDS, RetryPolicy
from tidemill.domain.breakers.downstream_errors import Classify
from tidemill.domain.errors import DeclarationError
from tidemill.domain.limits.adaptive_limit import Adaptive
from tidemill.domain.limits.limits import Rate
from tidemill.domain.time_constants import SECOND
from tidemill.names import BUILT_IN_PREFIX, Lane

if TYPE_CHECKING:
    from pydantic import BaseModel

OnDead = Literal["skip", "block"]
_DAY: Final = timedelta(days=1)
#: A caller must have the time to read how its job has ended.
_SHORTEST_RETENTION: Final = timedelta(minutes=1)

Payload = TypeVar("Payload", bound="BaseModel")
#: A handler of one job, or of a batch.
Handler = Callable[[Payload, Run], Any] | Callable[[list[Payload], list[Run]], Any]


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
    importance: Literal["normal", "deferrable", "sheddable"] = "normal",
    max_age_seconds: float | None = None,
    retention_days: float | None = None,
    on_dead: OnDead = "skip",
    concurrency_per_key: int | Adaptive | None = None,
    rate_per_key: Rate | None = None,
    key: Callable[[Payload], str] | None = None,
    across_tenants: bool = False,
    per_lane: bool = False,
    limit: SharedLimit | None = None,
    unique_seconds: float | None = None,
    schedule: str | None = None,
    catch_up: bool = True,
    depends_on: Sequence[str | Breaker] = (),
    classify: Classify | None = None,
    batch: int | None = None,
    commit: Literal["single", "grouped"] = "single",
) -> Callable[[Handler[Payload]], JobType]:
    """Declare a job type. The worker calls the handler with the payload as its model, and with the run.

    The handler returns the job's result, JSON of at most 32 KiB; or `Done` with writes and follow-up jobs that commit
    with the success, `Snooze`, `Continue`, `GiveUp` or `Cancelled`. `PermanentJobError` ends the job at once, and
    `RetryAfter` sets the delay of the next attempt. After any other exception, the next attempt starts after a random
    delay of at most `backoff_seconds`; this ceiling doubles with each attempt, up to `backoff_cap_seconds`.

    `max_hops` bounds snoozes, continuations and chains of follow-up jobs. A run may take `timeout_seconds`, and no
    longer than its lane allows. A job that could begin more than `max_age_seconds` ago expires instead of a run, and
    does not count as failed. Under strain, the HTTP API refuses new jobs of a type whose `importance` is `sheddable`,
    and accepts those of a `deferrable` type for 5 to 15 minutes later. A finished job is kept for `retention_days`, at
    most 366. When the head of a group dies, the group goes on (`skip`), or waits until an operator redrives or cancels
    the dead job (`block`).

    `key` makes a limit key from the payload; without it, all jobs of the type share one. Of the jobs with the same
    limit key, at most `concurrency_per_key` run at once, and runs start no more often than `rate_per_key`: for each
    tenant, or with `across_tenants` for all tenants together; with `per_lane`, for each lane. With `Adaptive(…)`, the
    concurrency follows what the runs measure. Instead of its own limit, a type may have a `limit` that it shares with
    other types. With `unique_seconds`, the same payload makes at most one job in each such period. With `schedule`, the
    scheduler submits jobs with an empty payload: `rate(1 hour)` or `cron(0 3 * * ? *)`, in UTC. While an
    operator pauses it, its times are skipped; with `catch_up`, one job makes up for them afterwards.

    `depends_on` names the downstreams that a run calls. While the breaker of one is open, the jobs of the type are
    parked and use no attempt. `classify` gets an error of the handler and returns its `ErrorClass`, or None to leave it
    to the rules of Tidemill: only transient and throttled errors count against a breaker.

    With `batch`, up to so many jobs of the type that a worker gets at a time share one call of the handler, at most
    100. It gets a list of payloads and a list of runs, and returns a list with one outcome for each job, in their
    order: what the handler of one job would return, or the exception that it would raise.

    With `commit="grouped"`, a worker claims the jobs of a batch in one call and settles them in another. If it dies in
    between, all of them run again: so only for handlers that are cheap, and idempotent or with effects under a key.
    """
    checks.require_name(name)
    checks.require_model(payload)
    checks.require_one_of("lane", lane, Lane)
    checks.require_one_of("on_dead", on_dead, get_args(OnDead))
    checks.require_whole_numbers(max_attempts=max_attempts, max_hops=max_hops)
    checks.require_one_of("importance", importance, Importance)
    checks.require_number(backoff_seconds=backoff_seconds, backoff_cap_seconds=backoff_cap_seconds)
    checks.require_flag(catch_up=catch_up)
    checks.require_schedule(schedule)
    limits = limit_arguments(
        shared=limit,
        concurrency=concurrency_per_key,
        rate=rate_per_key,
        key=key,
        across_tenants=across_tenants,
        per_lane=per_lane,
    )
    require_batch(batch, max_attempts=max_attempts, limit=limits["limit"])
    if classify is not None:
        checks.require_callable("classify", classify, "error")
    if schedule is not None and unique_seconds is not None:
        raise DeclarationError("schedule already submits one job each time: remove unique_seconds")
    if schedule is None and not catch_up:
        raise DeclarationError("catch_up needs a schedule: add one, or remove catch_up")
    if schedule is not None:
        checks.require_empty_payload(payload)
    checks.require_commit(
        commit, max_attempts=max_attempts, limited=limits["limit"] is not None, schedule=schedule, on_dead=on_dead
    )
    declared = partial(
        JobType,
        name=name,
        lane=Lane(lane),
        retry=RetryPolicy(
            max_attempts=max_attempts,
            backoff_seconds=backoff_seconds,
            backoff_cap_seconds=backoff_cap_seconds,
            max_hops=max_hops,
        ),
        parse=parser(payload),
        schema=payload.model_json_schema,
        timeout=checks.duration("timeout_seconds", timeout_seconds, SECOND),
        importance=Importance(importance),
        max_age=checks.duration("max_age_seconds", max_age_seconds, SECOND),
        retention=checks.duration("retention_days", retention_days, _DAY, shortest=_SHORTEST_RETENTION),
        blocks=on_dead == "block",
        **limits,
        unique=checks.duration("unique_seconds", unique_seconds, SECOND, shortest=SHORTEST_PERIOD),
        schedule=schedule,
        catch_up=catch_up,
        depends_on=policies(depends_on),
        classify=classify,
        batch=batch,
        grouped=commit == "grouped",
    )

    def declare(handler: Handler[Payload]) -> JobType:
        if batch is None:
            checks.require_callable("the handler", handler, "payload", "run")
        else:
            require_handler(handler, payload=payload)
        checks.require_json(name, handler)
        if not str(getattr(handler, "__module__", "")).startswith(BUILT_IN_PREFIX):
            checks.require_app_name(name)
        _require_own_function(name, handler)
        return noted(declared(handler=handler))

    return declare


def _require_own_function(name: str, handler: Handler[Any]) -> None:
    """A module has one value under each name, so a second function of that name would hide the type of the first."""
    first = getattr(handler, "__globals__", {}).get(getattr(handler, "__qualname__", ""))
    if isinstance(first, JobType) and first.name != name and first.handler is not handler:
        raise DeclarationError(
            f"the function {handler.__qualname__} already declares job type {first.name!r}, which {name!r} would "
            "replace: give this function another name"
        )
