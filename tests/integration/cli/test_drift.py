"""The comparison of the deployed mappings and schedules with the template, which reconcile makes."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.cli.called_functions import deploy
from tests.integration.cli.conftest import Cloud
from tests.support.job_tables import REGION
from tidemill.domain.errors import StoreUnavailableError
from tidemill.operator.drift.drift import drifted

STACK = "dev-Pipeline"


@pytest.fixture
def deployed(cloud: Cloud, environment: pytest.MonkeyPatch) -> Cloud:
    # The variable is set as in a function.
    environment.setenv("AWS_DEFAULT_REGION", REGION)
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    return cloud


def test_nothing_differs_right_after_a_deployment(deployed: Cloud) -> None:
    assert drifted(STACK) == {}


def test_each_difference_is_named(deployed: Cloud) -> None:
    deployed.resources.mappings["uuid-publish"]["State"] = "Disabled"
    deployed.resources.mappings["uuid-work"]["ScalingConfig"] = {"MaximumConcurrency": 2}
    del deployed.resources.schedules["default", "wake-1"]

    assert drifted(STACK) == {
        "event source mapping PublishMapping": "Enabled is false, and the template says true",
        "event source mapping WorkMapping": (
            'ScalingConfig is {"MaximumConcurrency": 2}, and the template says {"MaximumConcurrency": 5}'
        ),
        "schedule WakeSchedule": "its state is missing",
    }


def _denied(**_: Any) -> Any:
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no right"}}, "GetSchedule")


def _silent(**_: Any) -> Any:
    raise StoreUnavailableError("no answer")


@pytest.mark.parametrize(
    ("answer", "named"), [(_denied, "schedule WakeSchedule"), (_silent, f"stack {STACK}")], ids=["denied", "silent"]
)
def test_what_cannot_be_compared_is_named(
    deployed: Cloud, monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Any], named: str
) -> None:
    """A revoked right must not look like a stack that is as it should be."""
    monkeypatch.setattr(deployed.resources, "get_schedule", answer, raising=False)

    ((resource, difference),) = drifted(STACK).items()

    assert resource == named
    assert difference.startswith("not compared: ")


def test_a_stack_that_does_not_exist_is_named(cloud: Cloud) -> None:
    ((resource, difference),) = drifted("other").items()
    assert resource == "stack other"
    assert difference.startswith("not compared: ")
