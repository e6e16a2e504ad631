"""The alarms of the deployed app change state, and a page arrives at a subscriber of its topic."""

import json
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local import processes
from tidemill.local.alarm_watch import process
from tidemill.local.alarm_watch.installed_alarms import states
from tidemill.local.alarms import State
from tidemill.local.wait import wait_until
from tidemill.names import Output

#: So `Established` is on after 20 seconds.
MINUTE_SECONDS: Final = 2
PIPELINE: Final = "Tidemill-local-Pipeline"


@pytest.fixture
def pages(deployed: Deployed) -> Iterator[str]:
    """The URL of a queue that gets all pages."""
    sqs, sns = deployed.app.client("sqs"), deployed.app.client("sns")
    url = sqs.create_queue(QueueName="pages")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    subscription = sns.subscribe(
        TopicArn=deployed.app.outputs[Output.ALARM_TOPIC], Protocol="sqs", Endpoint=arn, ReturnSubscriptionArn=True
    )
    yield url
    sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
    sqs.delete_queue(QueueUrl=url)


@pytest.fixture
def _watch(deployed: Deployed) -> Iterator[None]:
    process.restart(deployed.app.folder, minute_seconds=MINUTE_SECONDS)
    yield
    processes.end_watch(deployed.app.folder)


@pytest.fixture
def publisher(deployed: Deployed) -> Iterator[str]:
    """The event source mapping of the publisher, which is enabled again after the test."""
    lambda_ = deployed.app.client("lambda")
    mapping = deployed.app.mapping("publish")
    yield mapping
    lambda_.update_event_source_mapping(UUID=mapping, Enabled=True)


@pytest.mark.usefixtures("_watch")
def test_a_disabled_publisher_fires_a_page_that_resolves_when_it_is_enabled(
    deployed: Deployed, pages: str, publisher: str
) -> None:
    lambda_ = deployed.app.client("lambda")
    _await_states(deployed, Established=State.ALARM)
    _await_states(deployed, LateCanary=State.OK, Page=State.OK)

    lambda_.update_event_source_mapping(UUID=publisher, Enabled=False)
    _await_states(deployed, LateCanary=State.ALARM, Page=State.ALARM)
    page = wait_until(lambda: _page(deployed, pages), PATIENCE_SECONDS, "the page")
    assert page == (f"{PIPELINE}-Page", State.ALARM)
    assert "the page was sent" in deployed.app.tidemill("status").stdout

    lambda_.update_event_source_mapping(UUID=publisher, Enabled=True)
    _await_states(deployed, LateCanary=State.OK, Page=State.OK)
    changes = (deployed.app.folder / process.LOG).read_text()
    assert f"ALARM incident {PIPELINE}-Page: Users are affected now. These fire: {PIPELINE}-LateCanary." in changes
    assert f"OK    incident {PIPELINE}-Page: it was ALARM" in changes


def _await_states(deployed: Deployed, **expected: State) -> None:
    """Wait until the alarms with these ids are in these states."""
    cloudwatch = deployed.app.client("cloudwatch")

    def reached() -> bool:
        # CloudFormation appends digits of its own to the logical id, and that ends in eight of CDK's.
        found = {
            re.sub(r"[0-9A-F]{8}(-\w+)?$", "", name.removeprefix(f"{PIPELINE}-")): state
            for name, state in states(cloudwatch, AlarmNamePrefix=PIPELINE).items()
        }
        return all(found.get(id_) is state for id_, state in expected.items())

    wait_until(reached, PATIENCE_SECONDS, f"the alarms {expected}")


def _page(deployed: Deployed, url: str) -> tuple[str, str] | None:
    """The name and the state in a page that has arrived."""
    for message in deployed.app.client("sqs").receive_message(QueueUrl=url).get("Messages", ()):
        page = json.loads(json.loads(message["Body"])["Message"])
        return page["AlarmName"], page["NewStateValue"]
    return None
