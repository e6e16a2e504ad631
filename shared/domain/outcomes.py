"""What a run returned, and the one pure function from that to what is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from shared.domain.errors import PermanentJobError
from shared.domain.job import AttemptError, DeathReason, Job
from shared.domain.retry import RetryPolicy
from shared.domain.states import State, Write, allowed

LONGEST_MESSAGE_CHARACTERS: Final = 500

#: One entry of a DynamoDB transaction, as the low-level client takes it: `{"Put": {…}}`, `{"Update": {…}}`, …
TransactWrite = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """Success, for a handler that wants more than to return a value.

    `writes` commit together with the success or not at all: the exactly-once effect.
    """

    result: Any = None
    writes: Sequence[TransactWrite] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """The run succeeded. `result` is JSON text, or None if there is none."""

    result: str | None = None
    writes: Sequence[TransactWrite] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run failed. With `death`, no further attempt is made."""

    error_class: str
    message: str
    death: DeathReason | None = None

    @classmethod
    def because(cls, error: BaseException) -> "Failed":
        death = DeathReason.PERMANENT if isinstance(error, PermanentJobError) else None
        return cls(error_class=type(error).__name__, message=_text(error), death=death)


Outcome = Succeeded | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What settle writes."""

    state: State
    result: str | None = None
    #: When the job may run again; None in a terminal state.
    due: datetime | None = None
    death: DeathReason | None = None
    error: AttemptError | None = None
    writes: Sequence[TransactWrite] = field(default=())


def settlement(job: Job, outcome: Outcome, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    """Outcome → next state. `job` is as claimed; `draw` in [0, 1) spreads the retry."""
    written = (
        Settlement(state=State.SUCCEEDED, result=outcome.result, writes=outcome.writes)
        if isinstance(outcome, Succeeded)
        else _after_failure(job, outcome, policy, now=now, draw=draw)
    )
    if not allowed(Write.SETTLE, State.RUNNING, written.state):
        raise AssertionError(f"settle may not write {written.state}")
    return written


def crash_outcome(job: Job, policy: RetryPolicy) -> Failed | None:
    """Right after a claim: a job whose earlier runs ended without a word dies instead of killing another worker."""
    if job.attempt <= policy.max_attempts:
        return None
    return Failed(
        error_class="Crashed",
        message=f"{job.attempt - 1} runs began and none of the last ended: killed, out of memory or out of time",
        death=DeathReason.CRASHED,
    )


def _after_failure(job: Job, failure: Failed, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    death = failure.death
    if death is None and job.attempt >= policy.max_attempts:
        death = DeathReason.EXHAUSTED
    due = None if death else now + timedelta(seconds=policy.delay_seconds(job.attempt, draw))
    error = AttemptError(
        attempt=job.attempt,
        at=now,
        error_class=failure.error_class,
        message=_storable(failure.message[:LONGEST_MESSAGE_CHARACTERS]),
        retryable=failure.death is None,
        next_due=due,
    )
    return Settlement(state=State.DEAD if death else State.RETRYING, due=due, death=death, error=error)


def _text(error: BaseException) -> str:
    """What an error says of itself, which is code of the handler's and may fail as well."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return "it could not say what it is"


def _storable(text: str) -> str:
    """Half a surrogate pair is no Unicode text, and the store refuses it."""
    return text.encode(errors="replace").decode()
