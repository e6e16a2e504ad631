"""The protocol of flows keeps its promises in every small history, and each of its rules is needed."""

from dataclasses import replace

import pytest

from tests.model.flow_graphs import CHAIN, FAN_IN, ONE_AND_PAIR, PAIR, SKIP, SMALL, TRIANGLE, Case
from tests.model.flow_histories import explore
from tests.model.flow_protocol import Protocol
from tests.model.flow_world import BrokenError, Faults

_REDRIVEN = Faults(deaths=1, redrives=1)


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)
def test_every_small_history_keeps_the_promises(case: Case) -> None:
    assert explore(Protocol(), case.graph, case.faults, added=case.added) > 100


@pytest.mark.parametrize(
    ("rule", "case", "promise"),
    [
        ("cursor_before_read", Case(FAN_IN, Faults()), "a node is not started"),
        ("mover_goes_on", Case(FAN_IN, Faults(kills=1)), "a node is not started"),
        ("insert_needs_absence", Case(PAIR, _REDRIVEN), "a node has two documents"),
        ("start_replaces_blocked", Case(PAIR, _REDRIVEN), "a node is not started"),
        ("marks_propagate", Case(PAIR, Faults(deaths=1)), "a flow does not end"),
        ("adding_asks", Case(PAIR, Faults(), added=1), "a node is not started"),
        ("look_starts", Case(PAIR, Faults()), "a node is not started"),
        ("look_judges_blocked", Case(PAIR, _REDRIVEN), "a flow ends with a node that nothing blocks"),
        ("redriven_end_asks", Case(SKIP, _REDRIVEN), "a flow does not end"),
        ("end_needs_looks", Case(PAIR, Faults(), added=1), "a flow ends too early"),
        ("end_is_fenced", Case(PAIR, Faults(zombies=1), added=1), "a flow ends twice"),
        ("cancel_inserts", Case(PAIR, Faults(flow_cancels=1)), "a flow ends too early"),
        (
            "cancel_replaces_blocked",
            Case(PAIR, Faults(deaths=1, flow_cancels=1)),
            "a cancelled flow leaves a node that may start",
        ),
        ("look_moves_last_cursor", Case(ONE_AND_PAIR, Faults(), added=1), "a flow does not end"),
        ("look_reads_again", Case(ONE_AND_PAIR, Faults(), added=1), "a flow does not end"),
        ("look_moves_cursors", Case(TRIANGLE, Faults(), added=1), "a node is not started"),
        ("blocked_again_asks", Case(CHAIN, Faults(deaths=2, redrives=1)), "a flow does not end"),
    ],
    ids=lambda value: value if isinstance(value, str) and "_" in value else "",
)
def test_without_a_rule_a_history_breaks_a_promise(rule: str, case: Case, promise: str) -> None:
    broken = replace(Protocol(), **{rule: False})

    with pytest.raises(BrokenError, match=promise):
        explore(broken, case.graph, case.faults, added=case.added)
