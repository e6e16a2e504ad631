"""The statements of a joint settle: what they remove, and that nothing is sent for nothing."""

import re
from typing import Any

import pytest

from tests.support.builders import A_STEP, A_WAIT, LEASE, NOW, RETENTION, SETTLEMENTS, a_job, reference_to, with_changes
from tidemill.application.attempt.grouped_commit import FirstClaim
from tidemill.application.ports import Settling
from tidemill.domain.dispatch.job_message import FirstRun
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.dynamodb.attempt.grouped_writes import DynamoGroupedWrites
from tidemill.dynamodb.indexes import NOT_LISTED

RUNNING = a_job(state=State.RUNNING, owner="t", attempt=1, claimed_at=NOW, due=NOW + LEASE)
SUCCESS = SETTLEMENTS[State.SUCCEEDED]


class Client:
    """Applies every statement, and notes each call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.consistent: list[bool] = []

    def batch_execute_statement(self, **request: Any) -> Any:
        self.calls.append([each["Statement"] for each in request["Statements"]])
        return {"Responses": [{} for _ in request["Statements"]]}

    def batch_get_item(self, **request: Any) -> Any:
        self.consistent = [asked["ConsistentRead"] for asked in request["RequestItems"].values()]
        return {"Responses": {}}


def writes(client: Any, failures: list[str]) -> DynamoGroupedWrites:
    return DynamoGroupedWrites(client, table="jobs", retention=RETENTION, indexes=NOT_LISTED, failed=failures.append)


@pytest.mark.parametrize(
    ("changes", "removed"),
    [
        ({}, set()),
        ({"open_runs": 1}, {"open_runs"}),
        ({"wait": A_WAIT}, {"wait"}),
        ({"holds": 2, "hold_cause": HoldCause.LIMIT}, {"holds", "hold_cause"}),
        ({"steps": (A_STEP,)}, {"steps"}),
    ],
    ids=["nothing", "open runs", "a wait", "a hold", "steps"],
)
def test_a_success_removes_only_what_its_document_has(changes: dict[str, Any], removed: set[str]) -> None:
    """AWS does not say what the removal of a missing attribute does in PartiQL."""
    client, failures = Client(), list[str]()
    job = with_changes(RUNNING, **changes)

    assert writes(client, failures).settle([Settling(job, SUCCESS, NOW)]) == [job]

    ((statement,),) = client.calls
    assert {*re.findall(r'REMOVE "(\w+)"', statement)} == {"owner", "due"} | removed
    assert failures == []


def test_no_call_is_made_without_a_statement() -> None:
    client, failures = Client(), list[str]()
    unsayable = replace(SUCCESS, signals_known=2)

    assert writes(client, failures).settle([]) == []
    assert writes(client, failures).claim([]) == []
    assert writes(client, failures).settle([Settling(RUNNING, unsayable, NOW)]) == [None]
    assert (client.calls, failures) == ([], [])


def test_a_settlement_that_no_statement_can_say_does_not_hold_the_others_back() -> None:
    client, failures = Client(), list[str]()
    settlings = [Settling(RUNNING, replace(SUCCESS, signals_known=2), NOW), Settling(RUNNING, SUCCESS, NOW)]

    assert writes(client, failures).settle(settlings) == [None, RUNNING]
    assert [len(call) for call in client.calls] == [1]


def test_claimed_documents_are_read_consistently() -> None:
    client = Client()
    claim = FirstClaim(
        reference=reference_to(RUNNING),
        first_run=FirstRun(type=RUNNING.type, due=NOW),
        token="t",
        now=NOW,
        lease_end=NOW + LEASE,
        worker="w",
    )

    assert writes(client, []).claim([claim]) == [None], "a document that is not found is left to a claim of one"
    assert client.consistent == [True]
