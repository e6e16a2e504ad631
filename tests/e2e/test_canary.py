"""The canary of the deployed app: its schedule calls it, and a canary of each lane takes effect."""

import json
from typing import Any

from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until
from tidemill.names import CANARY_PREFIX, JOB_KEY, Lane, Output


def _counts(deployed: Deployed) -> dict[Lane, int]:
    """How many canaries of each lane took effect."""
    table: Any = deployed.app.client("dynamodb")
    items = {
        lane: table.get_item(
            TableName=deployed.app.outputs[Output.JOBS_TABLE], Key={JOB_KEY: {"S": f"{CANARY_PREFIX}{lane}"}}
        ).get("Item")
        for lane in Lane
    }
    return {lane: int(item["count"]["N"]) if item else 0 for lane, item in items.items()}


def test_a_canary_of_each_lane_is_accepted_over_http_and_takes_effect(deployed: Deployed) -> None:
    before = _counts(deployed)
    name = json.loads(deployed.app.outputs[Output.FUNCTIONS])["canary"]
    answer = deployed.app.client("lambda").invoke(FunctionName=name, Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()

    def all_arrived() -> bool:
        return all(count > before[lane] for lane, count in _counts(deployed).items())

    wait_until(all_arrived, PATIENCE_SECONDS, "a canary of each lane to take effect")
