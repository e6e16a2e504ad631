"""Recorded steps: their order, who recorded them, and their keys."""

from collections.abc import Sequence

import pytest

from tests.support.builders import NOW
from tidemill.domain.errors import StepsChangedError
from tidemill.domain.steps.steps import Step, key_of_step, require_same_order


def steps(names: Sequence[str]) -> list[Step]:
    return [Step(name=name, at=NOW, attempt=1) for name in names]


@pytest.mark.parametrize(
    ("recorded", "asked", "so_far", "at_the_end"),
    [
        ("", "", True, True),
        ("", "ab", True, True),
        ("ab", "", True, False),
        ("ab", "a", True, False),
        ("ab", "ab", True, True),
        ("ab", "abc", True, True),
        ("ab", "b", False, False),
        ("ab", "ac", False, False),
        ("ab", "cb", False, False),
    ],
)
def test_a_run_asks_first_for_the_recorded_steps_in_their_order(
    recorded: str, asked: str, *, so_far: bool, at_the_end: bool
) -> None:
    for ended, allowed in ((False, so_far), (True, at_the_end)):
        if allowed:
            require_same_order(steps(recorded), list(asked), ended=ended)
            continue
        with pytest.raises(StepsChangedError) as raised:
            require_same_order(steps(recorded), list(asked), ended=ended)
        assert (raised.value.recorded, raised.value.asked) == (tuple(recorded), tuple(asked))


@pytest.mark.parametrize(("asked", "said"), [(["b", "c"], "asked for: b, c"), ([], "asked for: none")])
def test_changed_steps_are_named(asked: list[str], said: str) -> None:
    text = str(StepsChangedError(["a", "b"], asked))

    assert text.startswith("the steps of this job type have changed")
    assert text.endswith(f"recorded: a, b; {said}")


def test_a_run_that_has_not_ended_may_ask_for_more() -> None:
    require_same_order(steps("ab"), ["a"])


def test_the_key_of_a_step_begins_with_that_of_its_job() -> None:
    assert key_of_step("job-key", "charge") == "job-key/charge"
