"""Inputs that were answered wrongly once, and those like them: each with its right answer, at every entry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

#: What the answer says of the repeat of a submission under its idempotency key.
SAME: Final = "the same job"
REUSED: Final = "another body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One input, and its answer."""

    name: str
    job_type: str
    #: JSON, as it is sent.
    payload: str
    #: The paths of the faults of a payload that is refused; empty if it is accepted.
    refused: tuple[str, ...] = ()
    #: The result of an accepted job, or the class of the error of which it dies.
    result: Any = None
    error: str | None = None
    #: By a second payload under the same idempotency key, its answer.
    repeats: Mapping[str, str] = field(default_factory=dict)


_AMOUNT: Final = '{"id":"018c1a5e-7a9b-7c3d-8e5f-0123456789ab","at":"2045-01-31T08:00:00Z","cents":5}'
_ORDER: Final = f'{{"amount":{_AMOUNT},"placed":"2045-01-31T09:00:00+01:00","currency":"EUR"}}'


def _odd(kind: str, *, result: Any = None, error: str | None = None) -> Row:
    return Row(name=kind, job_type="test.odd", payload=f'{{"kind":"{kind}"}}', result=result, error=error)


CORPUS: Final = (
    Row(
        name="a strict part and strict fields",
        job_type="test.strict",
        payload=_ORDER,
        result={
            "amount": {"id": "018c1a5e-7a9b-7c3d-8e5f-0123456789ab", "at": "2045-01-31T08:00:00Z", "cents": 5},
            "placed": "2045-01-31T09:00:00+01:00",
            "currency": "EUR",
        },
    ),
    Row(
        name="a number as text in a strict part",
        job_type="test.strict",
        payload=_ORDER.replace("5}", '"5"}'),
        refused=("/payload/amount/cents",),
    ),
    Row(
        name="a time as a number in a strict field",
        job_type="test.strict",
        payload=_ORDER.replace('"2045-01-31T09:00:00+01:00"', "true"),
        refused=("/payload/placed",),
    ),
    Row(
        name="a model that changes its input",
        job_type="test.changing",
        payload='{"legacy":[1]}',
        result=[1],
        repeats={'{ "legacy": [1] }': SAME, '{"seen":[1]}': REUSED},
    ),
    Row(
        name="one number in two forms",
        job_type="test.echo",
        payload='{"n":1,"of":{"a":1e2,"b":-0.0}}',
        result={"n": 1, "of": {"a": 100.0, "b": -0.0}},
        repeats={'{"of":{"b":-0.0,"a":100.0},"n":1}': SAME, '{"n":1.0,"of":{"a":1e2,"b":-0.0}}': REUSED},
    ),
    Row(
        name="numbers beyond those of a double",
        job_type="test.echo",
        payload='{"n":9007199254740993}',
        result={"n": 9007199254740993},
        repeats={'{"n":9007199254740992}': REUSED},
    ),
    Row(
        name="half a surrogate pair",
        job_type="test.echo",
        payload='{"n":"\\ud800"}',
        result={"n": "\ud800"},
        repeats={'{"n":"\\uD800"}': SAME},
    ),
    _odd("a tuple", result=[1, [2]]),
    _odd("two names of one text", error="ResultError"),
    _odd("a name that is a number", error="ResultError"),
    _odd("a checkpoint with such a name", error="ResultError"),
    _odd("a set", error="ResultError"),
    _odd("a step with a model", result=1),
    _odd("a step with a secret", error="StepError"),
    _odd("a step with a sum", error="StepError"),
    _odd("a step with a part", error="StepError"),
    _odd("a group of errors", error="PermanentJobError"),
    _odd("an error without text", error="MuteError"),
)
