"""What `status` says of the strain that the governor found, and how an operator switches the governor off."""

import json

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW
from tidemill.aws import clients
from tidemill.domain.admission.governor import Starts
from tidemill.dynamodb.admission.strain_item import DynamoGovernor
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration

SINCE = "2045-03-04 05:06:07Z"


def strained(cloud: Cloud) -> None:
    governor = DynamoGovernor(clients.dynamodb(), table=cloud.table.name)
    seen = governor.add(Starts(late=6, total=20), now=NOW)
    assert governor.move(seen, 1, now=NOW) is not None


def test_status_shows_the_level_why_it_is_in_force_and_how_to_switch_it_off(cloud: Cloud) -> None:
    assert "STRAINED" not in run("status").stdout
    strained(cloud)

    shown = run("status").stdout

    assert f"STRAINED: level 1 by the governor since {SINCE}, 6 of 20 jobs" in " ".join(shown.split())
    off = "tidemill config set governor '{\"off\": true}'"
    assert off in shown
    assert json.loads(run("status", "--json").stdout)["governed_strain"] == {
        "level": 1,
        "since": "2045-03-04T05:06:07.891Z",
        "late": 6,
        "starts": 20,
    }


def test_an_operator_switches_the_governor_off(cloud: Cloud) -> None:
    result = run("config", "set", "governor", '{"off": true}', "--reason", "INC-7", "--yes")

    assert result.exit_code == 0, result.stderr
    store = DynamoConfiguration(clients.dynamodb(), table=cloud.table.name)
    assert store.read(consistent=True).settings["governor"].value == {"off": True}


def test_another_value_is_refused(cloud: Cloud) -> None:
    result = run("config", "set", "governor", '"off"', "--yes")

    assert result.exit_code == 1
    assert '{"off": true}' in result.stderr
    assert DynamoConfiguration(clients.dynamodb(), table=cloud.table.name).read().version == 0
