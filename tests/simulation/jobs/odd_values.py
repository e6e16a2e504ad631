"""What a handler may return in error, and the largest values that it may return: see docs/guides/outcomes.md."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, SecretStr, Strict

from tests.simulation.jobs.handler_runs import BrokenError
from tidemill import (
    Add,
    Continue,
    Done,
    GiveUp,
    PermanentJobError,
    RetryAfter,
    Run,
    Snooze,
    Submission,
    composition,
)
from tidemill.domain.errors import TidemillError
from tidemill.system import ids

_LARGEST_RESULT: Final = 32 * 1024
_LARGEST_CHECKPOINT: Final = 8 * 1024
_LARGEST_PAYLOAD: Final = 256 * 1024
#: One hundred entries of a transaction, less that of the job itself.
_MOST_WRITES: Final = 99
_INFINITE: Final = float("inf")
_NOT_JSON: Final = {"set": {1}}
_UNTYPED: Final[Any] = None
#: Both names are one text in JSON.
_LOSING: Final = {1: "a", "1": "b"}


def _marked(marks: list[str]) -> list[str]:
    """Changes what it gets, as no validator should, and never twice to the same."""
    marks.append(ids.new_token())
    return marks


class OddPlan(BaseModel):
    """A payload whose model changes it, and takes a time from JSON only."""

    #: The name of the value.
    key: str
    at: Annotated[datetime, Strict()] | None = None
    marks: Annotated[list[str], BeforeValidator(_marked)] = []


def _secret(run: Run) -> SecretStr:
    """Its effect would come before any refusal of its result."""
    raise AssertionError(f"a step whose result cannot be read back ran in {run.job_id}")


def _narrow(_run: Run) -> OddPlan:
    class Wider(OddPlan):
        more: int = 1

    return Wider(key="wider")


@dataclass(frozen=True, slots=True)
class OddValue:
    """What the handler does."""

    returned: Callable[[Run], Any]
    #: The class of the run's error; None if the run succeeds or goes on.
    error: str | None = None
    #: The reason of the death, at once since a retry would return the same; None if the job is retried.
    death: str | None = None


def _text(size: int) -> str:
    """Encoded as JSON, it has so many bytes."""
    return "x" * (size - 2)


def _followed_by(*submissions: Submission) -> Done:
    return Done(then=submissions)


def _plain(key: str | None = None, **payload: Any) -> Submission:
    return Submission(type="sim.plain", payload=payload, key=key)


def _checks(count: int) -> list[Any]:
    """Entries of a transaction that change nothing."""
    return [
        {
            "ConditionCheck": {
                "TableName": "effects",
                "Key": {"pk": {"S": f"nothing-{number}"}},
                "ConditionExpression": "attribute_not_exists(#pk)",
                "ExpressionAttributeNames": {"#pk": "pk"},
            }
        }
        for number in range(count)
    ]


def _accepted_before(run: Run, submission: Submission) -> None:
    """Another job of the tenant has this submission's key. A handler that cannot submit it is tried again."""
    try:
        composition.parts().submit(submission, tenant=run.tenant, trace=run.job_id)
    except TidemillError as error:
        raise BrokenError(f"attempt {run.attempt}") from error


def _followed_by_existing(run: Run) -> Done:
    _accepted_before(run, _plain("existing", count=1))
    return _followed_by(_plain("existing", count=1), _plain())


def _followed_by_another_body(run: Run) -> Done:
    _accepted_before(run, _plain("taken", count=1))
    return _followed_by(_plain("taken", count=2))


def _adding_a_text(_run: Run) -> Done:
    """The amount was a number when it was checked."""
    amounts: dict[str, Any] = {"n": 1}
    add = Add("effects", {"pk": {"S": "sum"}}, amounts)
    amounts["n"] = "one"
    return Done(writes=[add])


def _exit(_run: Run) -> None:
    raise SystemExit(1)


class _MuteError(Exception):
    """Its text ends the process of who reads it."""

    def __str__(self) -> str:
        raise SystemExit


def _raising(*errors: Exception) -> Callable[[Run], None]:
    """Raise them in a group, or the only one."""

    def fail(_run: Run) -> None:
        raise errors[0].with_traceback(None) if len(errors) == 1 else ExceptionGroup("calls", errors)

    return fail


def _refused(returned: Callable[[Run], Any]) -> OddValue:
    return OddValue(returned, "ResultError", "result cannot be stored")


#: By name of the value.
ODD_VALUES: Final[Mapping[str, OddValue]] = {
    "largest-result": OddValue(lambda _: _text(_LARGEST_RESULT)),
    "result-too-large": _refused(lambda _: _text(_LARGEST_RESULT + 1)),
    "result-no-json": _refused(lambda _: _NOT_JSON),
    "result-infinite": _refused(lambda _: _INFINITE),
    "result-that-loses-a-value": _refused(lambda _: _LOSING),
    "checkpoint-that-loses-a-value": _refused(lambda _: Continue([_LOSING])),
    "step-of-a-secret": OddValue(lambda run: run.step("a", _secret, run), "StepError", "permanent error"),
    "step-of-a-wider-model": OddValue(lambda run: run.step("a", _narrow, run).key, "StepError", "permanent error"),
    "step-that-loses-a-value": OddValue(lambda run: run.step("a", dict, _LOSING), "StepError", "permanent error"),
    "largest-checkpoint": OddValue(lambda run: None if run.resumed_from else Continue(_text(_LARGEST_CHECKPOINT))),
    "checkpoint-too-large": _refused(lambda _: Continue(_text(_LARGEST_CHECKPOINT + 1))),
    "checkpoint-no-json": _refused(lambda _: Continue(_NOT_JSON)),
    "saved-too-large": OddValue(
        lambda run: run.checkpoint(_text(_LARGEST_CHECKPOINT + 1)), "CheckpointTooLargeError", "permanent error"
    ),
    "follow-up-of-no-type": _refused(lambda _: _followed_by(Submission(type="sim.unheard-of"))),
    "follow-up-invalid": _refused(lambda _: _followed_by(_plain(), _plain(count="many"))),
    "follow-up-too-large": _refused(lambda _: _followed_by(_plain(padding="x" * _LARGEST_PAYLOAD))),
    "follow-ups-of-one-key": OddValue(
        lambda _: _followed_by(_plain("one", count=1), _plain("one", count=2)), "KeyReusedError"
    ),
    "snooze-into-the-past": OddValue(lambda _: Snooze(timedelta(seconds=-1)), "ValueError"),
    "snooze-beyond-a-year": OddValue(lambda _: Snooze(timedelta(days=367)), "ValueError"),
    "give-up-without-a-text": OddValue(lambda _: GiveUp(_UNTYPED), "TypeError"),
    "exit": OddValue(_exit, "TidemillError"),
    "error-without-text": OddValue(_raising(_MuteError()), "_MuteError"),
    "group-of-a-permanent-error": OddValue(
        _raising(BrokenError("other"), PermanentJobError("never"), RetryAfter(5)),
        "PermanentJobError",
        "permanent error",
    ),
    "group-that-names-a-delay": OddValue(_raising(_MuteError(), RetryAfter(5)), "RetryAfter"),
    "most-writes": OddValue(lambda _: Done(writes=_checks(_MOST_WRITES))),
    "too-many-writes": OddValue(
        lambda _: Done(writes=_checks(_MOST_WRITES + 1)), "TransactionTooLargeError", "permanent error"
    ),
    "write-that-is-none": OddValue(lambda _: Done(writes=[_UNTYPED]), "EffectRefusedError"),
    "write-that-cannot-be-encoded": OddValue(_adding_a_text, "EffectRefusedError"),
    "write-to-a-missing-table": OddValue(
        lambda _: Done(writes=[{"Delete": {"TableName": "missing", "Key": {"pk": {"S": "a"}}}}]),
        "InvalidEffectError",
        "permanent error",
    ),
    "two-writes-of-one-item": OddValue(
        lambda _: Done(writes=[*_checks(1), *_checks(1)]), "InvalidEffectError", "permanent error"
    ),
    "follow-up-that-exists": OddValue(_followed_by_existing),
    "follow-up-of-a-taken-key": OddValue(_followed_by_another_body, "KeyReusedError"),
}
