"""A submission to a group that others change all the time: it is refused, and stores nothing."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import RETENTION, a_job
from tests.support.deployed_functions import TENANT, Mill
from tidemill.domain.job import Job
from tidemill.dynamodb.groups import groups
from tidemill.dynamodb.job_store import DynamoJobStore


@pytest.mark.parametrize(
    ("payload", "kept"),
    # A payload stays for a while, with its owed deletion: a send that is held up may write the job yet.
    [({"n": 1}, 0), ({"n": 10**500}, 2)],
    ids=["small", "stored apart"],
)
def test_a_submission_to_a_group_that_always_changes_is_a_503_and_stores_no_job(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, payload: Any, kept: int
) -> None:
    body = {"type": "test.scripted", "group": "parcels", "payload": payload}
    others = DynamoJobStore(mill.table.client, table=mill.table.name, retention=RETENTION)
    entered: list[Job] = []

    def enter(applied: bool) -> None:
        if not applied:
            entered.append(others.insert_if_absent(a_job(tenant=TENANT, group="parcels")))

    mill.client.watch = enter
    with monkeypatch.context() as patch:
        patch.setattr(groups, "TRIED_FOR", timedelta(milliseconds=100))
        answer = mill.post_text(json.dumps(body), key="a-key")

    assert (answer.status, answer.body["type"]) == (503, "urn:tidemill:problem:unavailable")
    assert answer.headers["Retry-After"] == "1"
    assert entered
    # The others, the head and the tail, and a position for each that waits.
    assert mill.stored() == 2 * len(entered) + (1 if len(entered) > 1 else 0) + kept

    mill.client.watch = lambda _applied: None
    again = mill.post_text(json.dumps(body), key="a-key")
    assert (again.status, again.body["state"]) == (202, "waiting")
