"""What an operator reads of the deployed alarms agrees with the catalogue."""

from datetime import timedelta
from typing import Any

import pytest

from tests.infrastructure.alarms.installation import STAGE, Installation, plain
from tests.infrastructure.conftest import Synthesise
from tests.support.builders import NOW, SECOND
from tests.support.described_alarms import DescribedAlarms
from tidemill.cdk.alarms import alarm as catalogue
from tidemill.local.alarms.template import text
from tidemill.metrics import Metric
from tidemill.operator.status import alarm_states, burn_rates
from tidemill.operator.status.alarm_states import Severity

STACKS = ("Pipeline", "Shortener")


@pytest.fixture
def client(synthesise: Synthesise) -> DescribedAlarms:
    """All alarms in the state OK, under the names of the catalogue after those of their stacks."""
    app = synthesise(stage=STAGE, alarm_email="catalogue@example.com")
    found = DescribedAlarms()
    for stack, template, prefix in (("Pipeline", app.pipeline, ""), ("Shortener", app.shortener, "Shortener")):

        def resolve(id_: str, stack: str = stack, prefix: str = prefix) -> str:
            return f"{stack}-{plain(prefix, id_)}"

        for id_, resource in template["Resources"].items():
            described = {"AlarmName": resolve(id_), "StateValue": "OK", "StateTransitionedTimestamp": NOW}
            described |= text(resource.get("Properties", {}), resolve)
            if resource["Type"] == "AWS::CloudWatch::Alarm":
                found.metric_alarms.append(described)
            elif resource["Type"] == "AWS::CloudWatch::CompositeAlarm":
                found.composites.append(described)
    return found


def read(client: Any) -> alarm_states.Alarms:
    return alarm_states.read(client, STACKS, page_topic="Pipeline-AlarmsTopic")


def test_each_alarm_has_the_severity_and_the_meaning_of_its_entry(
    installation: Installation, client: DescribedAlarms
) -> None:
    found = {alarm.name.partition("-")[2]: alarm for alarm in read(client).by_name.values()}
    incident = found.pop(catalogue.PAGE)
    assert incident.severity is Severity.INCIDENT
    assert {name: (alarm.severity.value, alarm.meaning, alarm.heading) for name, alarm in found.items()} == {
        name: (entry.severity.value, entry.meaning, entry.heading.value) for name, entry in installation.entries.items()
    }


def test_a_firing_composite_names_its_firing_parts_and_not_what_is_always_on(client: DescribedAlarms) -> None:
    for alarm in (*client.metric_alarms, *client.composites):
        if alarm["AlarmName"].partition("-")[2] in {"Established", "LateCanarybulk", "LateCanary", "Page"}:
            alarm["StateValue"] = "ALARM"
    alarms = read(client)
    (page,) = alarms.firing(Severity.PAGE)
    assert page.name == "Pipeline-LateCanary"
    assert [part.name for part in alarms.firing_parts(page)] == ["Pipeline-LateCanarybulk"]
    assert [incident.name for incident in alarms.firing(Severity.INCIDENT)] == ["Pipeline-Page"]


def test_the_burn_rates_are_those_of_the_deployed_alarms(client: DescribedAlarms) -> None:
    """10 of 2,000 submissions failed, which is 0.5 %. No critical job ran."""
    client.values = {"Errors": 3, "Throttles": 1, Metric.SUBMISSIONS_FAILED: 6, Metric.SUBMITTED: 1990 / 3}
    minutes = {5: 14.4, 60: 14.4, 30: 6, 360: 6}
    found = burn_rates.read(client, read(client), now=NOW + SECOND)  # type: ignore[arg-type]  # a stand-in
    failed = [burn for burn in found if burn.bad_events == "failed submissions"]
    assert {burn.window // timedelta(minutes=1): burn.fires_above for burn in failed} == minutes
    assert [burn.rate for burn in failed] == pytest.approx([5] * 4)
    late = [burn for burn in found if burn.bad_events == "late starts of the lane critical"]
    assert {burn.window // timedelta(minutes=1): burn.fires_above for burn in late} == minutes
    assert {burn.rate for burn in late} == {None}
    assert len(found) == 8
    assert sorted(client.windows) == sorted(burn.window for burn in found)
