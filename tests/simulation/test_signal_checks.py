"""The check of late signals: a batch that died open may get its close, and no other job that has ended gets any."""

import json
from typing import Any

import pytest

from tests.simulation.checks.signals import SignalChecks
from tests.simulation.checks.violation import Violation
from tests.simulation.deployment import Deployment
from tests.simulation.world.world import World
from tidemill.domain.batches.batches import CLOSED
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.names import BATCH_TYPE

_ENDED = {"type": {"S": BATCH_TYPE}, "state": {"S": "dead"}, "created_at": {"N": "1"}}


def _signals(*names: str) -> dict[str, Any]:
    return {"signals": {"L": [{"M": {"name": {"S": name}, "data": {"S": json.dumps(obj=True)}}} for name in names]}}


def _check(before: dict[str, Any], after: dict[str, Any]) -> None:
    SignalChecks(World(0, Deployment())).a_late_signal_changes_nothing("ada#1", before, after)


def test_a_batch_that_died_open_gets_its_close() -> None:
    _check(_ENDED, {**_ENDED, **_signals(CLOSED)})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({**_ENDED, "type": {"S": "sim.plain"}}, _signals(CLOSED)),
        ({**_ENDED, "state": {"S": "cancelled"}}, _signals(CLOSED)),
        ({**_ENDED, **_signals(CLOSED)}, _signals(CLOSED, CLOSED)),
        (_ENDED, _signals(CANCELLED)),
        (_ENDED, {**_signals(CLOSED), "state": {"S": "queued"}}),
    ],
)
def test_no_other_job_gets_a_signal_after_its_end(before: dict[str, Any], after: dict[str, Any]) -> None:
    with pytest.raises(Violation, match="a late signal changes nothing"):
        _check(before, {**before, **after})
