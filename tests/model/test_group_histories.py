"""The protocol of groups keeps its promises in every small history, and each of its rules is needed."""

from dataclasses import replace

import pytest

from tests.model.group_histories import BrokenError, explore
from tests.model.group_protocol import Protocol


@pytest.mark.parametrize(
    ("blocks", "submissions", "cancels", "redrives"),
    [(False, 2, 1, 1), (False, 3, 1, 0), (True, 2, 1, 1), (True, 3, 1, 1)],
)
def test_every_small_history_keeps_the_promises(blocks: bool, submissions: int, cancels: int, redrives: int) -> None:
    states = explore(Protocol(blocks=blocks), submissions=submissions, cancels=cancels, redrives=redrives)

    assert states > 1_000


@pytest.mark.parametrize(
    ("rule", "submissions", "redrives", "promise"),
    [
        ("entry_advances", 2, 0, "a job waits at rest"),
        ("first_waiter_renews_head", 2, 0, "a job waits at rest"),
        ("redrive_renews_head", 2, 1, "a position is used again|two jobs are live"),
        ("leave_compares_tail", 2, 1, "a job waits at rest"),
        ("leave_reads_again", 3, 0, "a job waits at rest"),
        ("idle_deletes_tail", 2, 1, "a job waits at rest"),
        ("turn_needs_waiting", 2, 1, "a job that has ended runs"),
    ],
)
def test_without_any_one_rule_a_history_breaks_a_promise(
    rule: str, submissions: int, redrives: int, promise: str
) -> None:
    broken = replace(Protocol(), **{rule: False})

    with pytest.raises(BrokenError, match=promise):
        explore(broken, submissions=submissions, cancels=1, redrives=redrives)
