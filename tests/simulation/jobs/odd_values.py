"""What a handler may return in error, and the largest values that it may return: see docs/guides/outcomes.md."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from tidemill import Continue, Done, GiveUp, Run, Snooze, Submission

_LARGEST_RESULT: Final = 32 * 1024
_LARGEST_CHECKPOINT: Final = 8 * 1024
_LARGEST_PAYLOAD: Final = 256 * 1024
_INFINITE: Final = float("inf")
_NOT_JSON: Final = {"set": {1}}
_UNTYPED: Final[Any] = None


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


def _exit(_run: Run) -> None:
    raise SystemExit(1)


def _refused(returned: Callable[[Run], Any]) -> OddValue:
    return OddValue(returned, "ResultError", "result cannot be stored")


#: By name of the value.
ODD_VALUES: Final[Mapping[str, OddValue]] = {
    "largest-result": OddValue(lambda _: _text(_LARGEST_RESULT)),
    "result-too-large": _refused(lambda _: _text(_LARGEST_RESULT + 1)),
    "result-no-json": _refused(lambda _: _NOT_JSON),
    "result-infinite": _refused(lambda _: _INFINITE),
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
}
