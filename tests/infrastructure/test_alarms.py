"""What pages somebody does so in time, is heard, and says what to do."""

import json
import re
from collections import Counter

import pytest

from shared.names import METRIC_NAMESPACE, Metric
from stacks.alarms import Heading
from stacks.asset import ROOT
from tests.infrastructure.conftest import Resource, Synthesise, Synthesised


def _alarms(app: Synthesised) -> list[Resource]:
    return [alarm for _, alarm in app.of_type("AWS::CloudWatch::Alarm")]


def _watched(app: Synthesised, metric: str) -> set[str]:
    """Logical ids of what the alarms on `metric` look at."""
    return {
        dimension["Value"].get("Ref") or dimension["Value"]["Fn::GetAtt"][0]
        for alarm in _alarms(app)
        if alarm["MetricName"] == metric
        for dimension in alarm["Dimensions"]
    }


def test_every_function_rings_when_it_errs_or_is_throttled(dev: Synthesised) -> None:
    functions = {id_ for id_, _ in dev.of_type("AWS::Lambda::Function")}
    assert _watched(dev, "Errors") == functions
    assert _watched(dev, "Throttles") == functions


def test_every_queue_rings_when_its_messages_wait(dev: Synthesised) -> None:
    queues = dict(dev.of_type("AWS::SQS::Queue"))
    lanes = {id_ for id_, queue in queues.items() if "RedrivePolicy" in queue}
    assert _watched(dev, "ApproximateAgeOfOldestMessage") == lanes
    assert _watched(dev, "ApproximateNumberOfMessagesVisible") == queues.keys() - lanes


def test_a_late_stream_rings(dev: Synthesised) -> None:
    (late,) = (alarm for alarm in _alarms(dev) if alarm["MetricName"] == "IteratorAge")
    assert late["Statistic"] == "Maximum"
    assert late["Threshold"] == 5 * 60 * 1000


def test_one_letter_rings(dev: Synthesised) -> None:
    for alarm in _alarms(dev):
        if alarm["MetricName"] == "ApproximateNumberOfMessagesVisible":
            assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold")
            assert alarm["EvaluationPeriods"] == 1


def test_every_alarm_rings_somewhere(dev: Synthesised) -> None:
    ((topic, _),) = dev.of_type("AWS::SNS::Topic")
    for alarm in _alarms(dev):
        assert len(alarm["AlarmActions"]) == 1
        assert topic in json.dumps(alarm["AlarmActions"])
        assert alarm.get("ActionsEnabled", True)


def test_every_alarm_says_what_silence_means(dev: Synthesised) -> None:
    assert {alarm["TreatMissingData"] for alarm in _alarms(dev)} == {"notBreaching"}


def test_alarms_are_of_one_metric_each(dev: Synthesised) -> None:
    assert not any("Metrics" in alarm for alarm in _alarms(dev))


def test_every_alarm_links_to_a_heading_of_the_runbook(dev: Synthesised) -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    anchors = {re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in re.findall(r"(?m)^#+ (.*)$", text)}
    linked = Counter(alarm["AlarmDescription"].rpartition("docs/runbook.md#")[2] for alarm in _alarms(dev))
    assert linked.keys() == set(Heading)
    assert linked.keys() <= anchors


def test_the_runbook_can_be_elsewhere(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", runbook_url="https://wiki.example/runbook")
    assert all("What to do: https://wiki.example/runbook#" in alarm["AlarmDescription"] for alarm in _alarms(app))


def test_alarms_can_publish_and_only_over_tls(dev: Synthesised) -> None:
    ((_, topic),) = dev.of_type("AWS::SNS::Topic")
    # With the AWS-managed key an alarm could not publish.
    assert "KmsMasterKeyId" not in topic
    ((_, policy),) = dev.of_type("AWS::SNS::TopicPolicy")
    statements = {statement["Effect"]: statement for statement in policy["PolicyDocument"]["Statement"]}
    assert statements["Allow"]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert statements["Allow"]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert statements["Deny"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize(
    ("settings", "subscribers"), [({}, []), ({"alarm_email": "ops@example.com"}, ["ops@example.com"])]
)
def test_whoever_is_named_is_mailed(synthesise: Synthesise, settings: dict[str, str], subscribers: list[str]) -> None:
    app = synthesise(stage="dev", **settings)
    assert [subscription["Endpoint"] for _, subscription in app.of_type("AWS::SNS::Subscription")] == subscribers


def test_the_dashboard_shows_what_jobs_do_and_wait_for(dev: Synthesised) -> None:
    ((_, dashboard),) = dev.of_type("AWS::CloudWatch::Dashboard")
    body = json.dumps(dashboard["DashboardBody"])
    for metric in Metric:
        assert (
            f'\\"{METRIC_NAMESPACE}\\",\\"{metric}\\",\\"lane\\",\\"default\\",\\"stage\\",\\"dev\\"'
            in body.replace("\\\\", "\\")
        )
    for shown in (
        "ApproximateNumberOfMessagesVisible",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateAgeOfOldestMessage",
        "IteratorAge",
        "WriteThrottleEvents",
        "ReadThrottleEvents",
        "p50",
        "p95",
        "p99",
    ):
        assert shown in body
