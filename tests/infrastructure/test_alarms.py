"""Each alarm fires in time, reaches the topic, and links to the runbook."""

import json
import re
from collections import Counter
from datetime import timedelta
from itertools import product

import pytest

from stacks.composition import ROOT
from tests.infrastructure.conftest import Resource, Synthesise, Synthesised
from tidemill.application.owed import LONGEST_PAUSE
from tidemill.cdk.alarm import Heading
from tidemill.names import (
    ATTENTION_INDEX,
    LISTING_INDEX,
    METRIC_NAMESPACE,
    RECONCILE_INTERVAL_SECONDS,
    WAKE_INTERVAL_SECONDS,
    WAKE_WINDOW_SECONDS,
    Lane,
    Metric,
)

#: The two metrics that count the messages of a queue without delays.
MESSAGES = {"ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"}


def _alarms(app: Synthesised) -> list[Resource]:
    return [alarm for _, alarm in app.of_type("AWS::CloudWatch::Alarm")]


def _metrics(alarm: Resource) -> list[Resource]:
    """Name, statistic, period and dimensions of the metrics that the alarm reads."""
    terms = [term["MetricStat"] for term in alarm.get("Metrics", []) if "MetricStat" in term]
    return [{**term["Metric"], "Statistic": term["Stat"], "Period": term["Period"]} for term in terms] or [alarm]


def _names(alarm: Resource) -> set[str]:
    return {metric["MetricName"] for metric in _metrics(alarm)}


def _watched(app: Synthesised, metric: str) -> set[str]:
    """Logical ids of the resources that the alarms on `metric` watch."""
    return {
        dimension["Value"].get("Ref") or dimension["Value"]["Fn::GetAtt"][0]
        for alarm in _alarms(app)
        for read in _metrics(alarm)
        if read["MetricName"] == metric
        for dimension in read["Dimensions"]
    }


def test_every_function_has_alarms_for_errors_and_throttles(dev: Synthesised) -> None:
    functions = {id_ for id_, _ in dev.of_type("AWS::Lambda::Function")}
    assert _watched(dev, "Errors") == functions
    assert _watched(dev, "Throttles") == functions


def test_every_queue_has_an_alarm_for_waiting_messages(dev: Synthesised) -> None:
    queues = dict(dev.of_type("AWS::SQS::Queue"))
    lanes = {id_ for id_, queue in queues.items() if "RedrivePolicy" in queue}
    assert _watched(dev, "ApproximateAgeOfOldestMessage") == lanes
    assert _watched(dev, "ApproximateNumberOfMessagesVisible") == queues.keys() - lanes


def test_an_alarm_fires_when_the_stream_is_late(dev: Synthesised) -> None:
    (late,) = (alarm for alarm in _alarms(dev) if "IteratorAge" in _names(alarm))
    assert late["Statistic"] == "Maximum"
    assert late["Threshold"] == 5 * 60 * 1000


def test_one_dead_letter_message_fires_the_alarm_also_while_a_sweep_hides_it(dev: Synthesised) -> None:
    for alarm in _alarms(dev):
        if "ApproximateNumberOfMessagesVisible" in _names(alarm):
            assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold")
            assert alarm["EvaluationPeriods"] == 1
            assert _names(alarm) == MESSAGES
            assert {(read["Statistic"], read["Period"]) for read in _metrics(alarm)} == {("Maximum", 60)}
            (total,) = (term for term in alarm["Metrics"] if "Expression" in term)
            assert total["Expression"] == "visible + hidden"
            parts = [term for term in alarm["Metrics"] if "MetricStat" in term]
            assert [(term["Id"], term["ReturnData"]) for term in parts] == [("visible", False), ("hidden", False)]
            assert len({json.dumps(read["Dimensions"]) for read in _metrics(alarm)}) == 1


def test_the_alarm_of_work_that_fails_stays_on_between_two_tries(dev: Synthesised) -> None:
    (alarm,) = (alarm for alarm in _alarms(dev) if Metric.PASSED_OVER in _names(alarm))
    assert (alarm["DatapointsToAlarm"], alarm["Period"]) == (1, 60)
    assert alarm["EvaluationPeriods"] * 60 > LONGEST_PAUSE.total_seconds() + WAKE_INTERVAL_SECONDS


def test_every_alarm_publishes_to_the_topic(dev: Synthesised) -> None:
    ((topic, _),) = dev.of_type("AWS::SNS::Topic")
    for alarm in _alarms(dev):
        assert len(alarm["AlarmActions"]) == 1
        assert topic in json.dumps(alarm["AlarmActions"])
        assert alarm.get("ActionsEnabled", True)


def test_missing_data_fires_only_the_alarms_of_wake_and_reconcile(dev: Synthesised) -> None:
    periods = {}
    for alarm in _alarms(dev):
        if alarm["TreatMissingData"] != "notBreaching":
            assert alarm["TreatMissingData"] == "breaching"
            assert (alarm["MetricName"], alarm["ComparisonOperator"]) == ("Invocations", "LessThanOrEqualToThreshold")
            assert (alarm["Threshold"], alarm["Statistic"]) == (0, "Sum")
            ((dimension,),) = [alarm["Dimensions"]]
            function = dict(dev.of_type("AWS::Lambda::Function"))[dimension["Value"]["Ref"]]
            periods[function["Handler"]] = alarm["Period"]
    assert periods == {
        "tidemill.entrypoints.wake.handle": WAKE_WINDOW_SECONDS,
        "tidemill.entrypoints.reconcile.handle": 3 * RECONCILE_INTERVAL_SECONDS,
    }


def test_an_alarm_fires_when_a_pass_over_the_table_takes_too_long(dev: Synthesised) -> None:
    (late,) = (alarm for alarm in _alarms(dev) if Metric.RECONCILE_AGE in _names(alarm))
    assert (late["Statistic"], late["EvaluationPeriods"]) == ("Maximum", 1)
    # Longer than the time between two points.
    assert late["Period"] == 3 * RECONCILE_INTERVAL_SECONDS
    longest = timedelta(milliseconds=late["Threshold"])
    assert longest == dev.config.longest_reconcile_age
    # A pass each day, and what 12.8 million read units take.
    assert timedelta(hours=24 + 3.5) < longest < timedelta(hours=24 + 7)


@pytest.mark.parametrize(
    "metric", [Metric.DEAD, Metric.NUDGED, Metric.UNDELIVERABLE, Metric.UNAVAILABLE, Metric.STRAY_THREADS]
)
def test_each_lane_has_an_alarm_on_the_metric_of_the_engine(dev: Synthesised, metric: Metric) -> None:
    lanes = {
        dimension["Value"]
        for alarm in _alarms(dev)
        if _names(alarm) == {metric} and alarm["Threshold"] == 0
        for dimension in alarm["Dimensions"]
        if dimension["Name"] == "lane"
    }
    assert lanes == set(Lane)


def test_alarms_call_reconcile_when_messages_may_be_lost_and_never_for_what_reconcile_causes(dev: Synthesised) -> None:
    ((_, subscription),) = dev.of_type("AWS::SNS::Subscription")
    assert subscription["Protocol"] == "lambda"
    (function,) = subscription["Endpoint"]["Fn::GetAtt"][:1]
    assert dict(dev.of_type("AWS::Lambda::Function"))[function]["Handler"] == "tidemill.entrypoints.reconcile.handle"
    assert subscription["FilterPolicyScope"] == "MessageBody"
    assert subscription["FilterPolicy"].keys() == {"AlarmName", "NewStateValue"}
    assert subscription["FilterPolicy"]["NewStateValue"] == ["ALARM", "OK"]
    alarms = dict(dev.of_type("AWS::CloudWatch::Alarm"))
    calling = [alarms[name["Ref"]] for name in subscription["FilterPolicy"]["AlarmName"]]
    assert set().union(*map(_names, calling)) == MESSAGES | {Metric.PASSED_OVER}
    assert {alarm["AlarmDescription"].rpartition("#")[2] for alarm in calling} == {"dead-jobs", "unpublished-records"}
    assert calling == [alarm for alarm in _alarms(dev) if alarm.get("OKActions") == alarm["AlarmActions"]]
    # The limit of combinations of values in a subscription's filter.
    assert len(calling) <= 150


def test_a_call_of_reconcile_that_sns_cannot_deliver_goes_to_a_queue_with_an_alarm(dev: Synthesised) -> None:
    ((_, subscription),) = dev.of_type("AWS::SNS::Subscription")
    (queue, _) = subscription["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"]
    assert queue in _watched(dev, "ApproximateNumberOfMessagesVisible")
    (allowed,) = (
        statement
        for _, policy in dev.of_type("AWS::SQS::QueuePolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Principal"] == {"Service": "sns.amazonaws.com"} and policy["Queues"] == [{"Ref": queue}]
    )
    assert (allowed["Effect"], allowed["Action"]) == ("Allow", "sqs:SendMessage")
    assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": subscription["TopicArn"]}}


def test_each_alarm_has_one_metric_or_the_messages_of_one_queue(dev: Synthesised) -> None:
    assert all(len(_names(alarm)) == 1 or _names(alarm) == MESSAGES for alarm in _alarms(dev))


def test_every_alarm_links_to_a_heading_of_the_runbook(dev: Synthesised) -> None:
    text = (ROOT / "docs" / "operations" / "runbook.md").read_text()
    anchors = {re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in re.findall(r"(?m)^#+ (.*)$", text)}
    linked = Counter(alarm["AlarmDescription"].rpartition("docs/operations/runbook.md#")[2] for alarm in _alarms(dev))
    assert linked.keys() == set(Heading)
    assert linked.keys() <= anchors


def test_alarms_link_to_the_runbook_of_the_setting(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", runbook_url="https://wiki.example/runbook")
    assert all("What to do: https://wiki.example/runbook#" in alarm["AlarmDescription"] for alarm in _alarms(app))


def test_alarms_can_publish_to_the_topic_and_only_over_tls(dev: Synthesised) -> None:
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
def test_the_address_of_the_setting_receives_mail(
    synthesise: Synthesise, settings: dict[str, str], subscribers: list[str]
) -> None:
    app = synthesise(stage="dev", **settings)
    subscriptions = [subscription for _, subscription in app.of_type("AWS::SNS::Subscription")]
    assert [each["Endpoint"] for each in subscriptions if each["Protocol"] == "email"] == subscribers


def test_the_dashboard_shows_every_metric_of_the_engine(dev: Synthesised) -> None:
    ((_, dashboard),) = dev.of_type("AWS::CloudWatch::Dashboard")
    body = json.dumps(dashboard["DashboardBody"])
    # The stream and unreadable items belong to no lane, so the engine counts them with the default lane.
    without_lane = set(
        product(
            [
                *(
                    Metric.HANDED_OVER,
                    Metric.PASSED_OVER,
                    Metric.UNREADABLE,
                    Metric.RECONCILE_AGE,
                    Metric.RECONCILE_DURATION,
                ),
                *(Metric.RECONCILE_ITEMS, Metric.RECONCILE_SEGMENTS),
            ],
            set(Lane) - {Lane.DEFAULT},
        )
    )
    for metric, lane in set(product(Metric, Lane)) - without_lane:
        assert f'\\"{METRIC_NAMESPACE}\\",\\"{metric}\\",\\"lane\\",\\"{lane}\\",\\"stage\\",\\"dev\\"' in body.replace(
            "\\\\", "\\"
        )
    for shown in (
        "ApproximateNumberOfMessagesVisible",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateAgeOfOldestMessage",
        "IteratorAge",
        ATTENTION_INDEX,
        LISTING_INDEX,
        "WriteThrottleEvents",
        "ReadThrottleEvents",
        "p50",
        "p95",
        "p99",
    ):
        assert shown in body
