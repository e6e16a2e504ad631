"""The jobs of batches and flows take no signals: those that close and cancel them have requests of their own."""

import json
from typing import Any

import pytest

from tests.support.api_gateway import request
from tests.support.deployed_functions import Mill, forget
from tidemill.names import BATCH_PACKAGE, FLOW_PACKAGE, Env

JSON = {"Content-Type": "application/json"}


def post(path: str, body: Any) -> Any:
    return request("POST", path, body=json.dumps(body).encode(), headers=JSON)


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("batches", {}), ("flows", {"nodes": [{"name": "first", "type": "test.scripted"}]})],
)
@pytest.mark.parametrize("name", ["closed", "cancelled", "look", "approval"])
def test_a_signal_to_a_batch_or_a_flow_is_refused_and_it_can_be_cancelled(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, kind: str, asked: dict[str, Any], name: str
) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{BATCH_PACKAGE},{FLOW_PACKAGE}")
    forget()
    whole = post(f"/{kind}", asked).body["id"]

    for value in ({"by": "ada"}, True):
        refused = post(f"/jobs/{whole}/signals/{name}", value)
        assert (refused.status, refused.body["type"]) == (409, "urn:tidemill:problem:not-allowed-now")
    cancelled = post(f"/{kind}/{whole}/cancel", {})
    assert (cancelled.status, cancelled.body["cancel_requested_at"] is None) == (200, False)
    assert {each.data for each in mill.job(whole).signals.received} == {"true"}
