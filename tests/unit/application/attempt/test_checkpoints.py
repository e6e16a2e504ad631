"""The progress that a checkpoint may report: whole numbers of as many digits as DynamoDB keeps."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import NOW, a_job
from tidemill.application.attempt.checkpoints import checkpoints
from tidemill.application.attempt.run import SaveCheckpoint
from tidemill.application.ports import Checkpoint
from tidemill.domain.job import Job

LARGEST = 10**38 - 1


class Saved:
    """A store of checkpoints."""

    def __init__(self) -> None:
        self.checkpoints: list[Checkpoint] = []

    def checkpoint(self, _job: Job, saved: Checkpoint, *, now: Any) -> bool:
        assert now == NOW
        self.checkpoints.append(saved)
        return False


class Counter:
    """A whole number of a library."""

    def __index__(self) -> int:
        return 7


def saving(store: Saved, *, under_way: Callable[[], None] = lambda: None) -> SaveCheckpoint:
    return checkpoints(a_job(), store, lambda: NOW, under_way=under_way)  # type: ignore[arg-type]  # all it needs


def _never() -> None:
    raise AssertionError("the values are checked first")


@pytest.mark.parametrize(
    ("given", "kept"), [(None, None), (0, 0), (LARGEST, LARGEST), (-LARGEST, -LARGEST), (True, 1), (Counter(), 7)]
)
@pytest.mark.parametrize("which", ["done", "total"])
def test_a_progress_is_a_whole_number(which: str, given: Any, kept: int | None) -> None:
    store = Saved()
    done, total = (given, None) if which == "done" else (None, given)
    saving(store)(None, done, total)
    assert store.checkpoints == [Checkpoint(**{"state": None, "done": None, "total": None} | {which: kept})]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (LARGEST + 1, " has more than 38 digits; use a smaller number"),
        (-LARGEST - 1, " has more than 38 digits; use a smaller number"),
        (1.0, " is 1.0; it must be a whole number"),
        ("1", " is '1'; it must be a whole number"),
        (float("nan"), " is nan; it must be a whole number"),
    ],
)
@pytest.mark.parametrize("which", ["done", "total"])
def test_any_other_progress_is_refused_before_it_is_saved(which: str, given: Any, text: str) -> None:
    store = Saved()
    done, total = (given, None) if which == "done" else (None, given)
    with pytest.raises(ValueError, match=rf"^{which}{text}$"):
        saving(store, under_way=_never)(None, done, total)
    assert store.checkpoints == []
