"""Each alarm of the template watches what it should, reaches its topic, and links to the runbook."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import product

import pytest

from stacks.composition import ROOT
from stacks.stages import STAGES
from tests.infrastructure.conftest import Resource, Synthesise, Synthesised
from tidemill.application.dispatch.owed import LONGEST_PAUSE
from tidemill.cdk.alarms.alarm import PAGE, Heading
from tidemill.local.alarms import CompositeAlarm, MetricAlarm, read_alarms
from tidemill.metrics import METRIC_NAMESPACE, Metric
from tidemill.names import ATTENTION_INDEX, LISTING_INDEX, RECONCILE_INTERVAL_SECONDS, WAKE_INTERVAL_SECONDS, Lane

#: The two metrics that count the messages of a queue without delays.
MESSAGES = {"ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"}
#: The topics by their logical ids.
PAGES, TICKETS = "AlarmsTopic3A2DFEBA", "TicketsTopic"


def _alarms(app: Synthesised) -> list[Resource]:
    return [alarm for _, alarm in app.of_type("AWS::CloudWatch::Alarm")]


def _all_alarms(app: Synthesised) -> Iterator[Resource]:
    yield from _alarms(app)
    yield from (alarm for _, alarm in app.of_type("AWS::CloudWatch::CompositeAlarm"))


def _read(app: Synthesised) -> dict[str, MetricAlarm | CompositeAlarm]:
    """The alarms of the pipeline, by their ids in the catalogue."""
    found = read_alarms(app.pipeline["Resources"])
    return {re.sub(r"[0-9A-F]{8}$", "", alarm.name): alarm for alarm in found}


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
    # The lanes also have an alarm for a worker that is not called.
    assert _watched(dev, "ApproximateNumberOfMessagesNotVisible") == queues.keys() - lanes
    assert _watched(dev, "ApproximateNumberOfMessagesVisible") == queues.keys()


def test_an_alarm_fires_when_the_stream_is_late(dev: Synthesised) -> None:
    (late,) = (alarm for alarm in _alarms(dev) if "IteratorAge" in _names(alarm))
    assert late["Statistic"] == "Maximum"
    assert late["Threshold"] == 5 * 60 * 1000


def test_one_dead_letter_message_fires_the_alarm_also_while_a_sweep_hides_it(dev: Synthesised) -> None:
    for alarm in _alarms(dev):
        if "ApproximateNumberOfMessagesNotVisible" in _names(alarm):
            assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold")
            assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (1, 5)
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


def test_a_page_is_published_once_for_all_causes_and_each_cause_is_a_ticket(dev: Synthesised) -> None:
    alarms = _read(dev)
    page = alarms.pop(PAGE)
    assert page.alarm_actions == (PAGES,)
    assert isinstance(page, CompositeAlarm)
    causes = {alarm for alarm in alarms.values() if alarm.name in page.rule.children}
    assert len(causes) == len(page.rule.children) == 6
    assert all(page.rule.holds(dict.fromkeys(page.rule.children, "OK") | {cause.name: "ALARM"}) for cause in causes)
    parts = {child for alarm in alarms.values() if isinstance(alarm, CompositeAlarm) for child in alarm.rule.children}
    for alarm in alarms.values():
        actions = () if alarm.name in parts else (alarm.alarm_actions[0],)
        assert alarm.alarm_actions == actions
        assert all(action.startswith(TICKETS) for action in actions), alarm.name


def test_a_stage_without_a_canary_does_not_miss_it(synthesise: Synthesise) -> None:
    """Its alarms would fire for ever."""
    assert "LateCanary" not in _read(synthesise(stage="dev", canary="off"))


def test_a_stage_whose_callers_send_tokens_misses_its_canary(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", jwt_issuer="https://issuer.example", jwt_audience="jobs")
    assert "LateCanary" in _read(app)


def test_alarms_of_the_example_are_tickets(dev: Synthesised) -> None:
    for alarm in read_alarms(dev.shortener["Resources"]):
        assert [TICKETS in action for action in alarm.alarm_actions] == [True]


def test_missing_data_means_a_fault_only_for_calls_of_wake_and_canaries(dev: Synthesised) -> None:
    unusual = {
        id_: alarm["TreatMissingData"] for id_, alarm in _by_id(dev) if alarm["TreatMissingData"] != "notBreaching"
    }
    canaries = {f"LateCanary{lane}": "breaching" for lane in Lane}
    assert unusual == canaries | {"UncalledWake": "breaching", "Established": "ignore"}


def _by_id(app: Synthesised) -> Iterator[tuple[str, Resource]]:
    for id_, alarm in app.of_type("AWS::CloudWatch::Alarm"):
        yield re.sub(r"[0-9A-F]{8}$", "", id_), alarm


@pytest.mark.parametrize("stage", [*STAGES])
def test_alarms_keep_to_the_limits_of_cloudwatch(synthesise: Synthesise, stage: str) -> None:
    """At most ten metrics: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-limits.html.

    "Each metric must be using the same period", and the windows of a period below an hour end within a day:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
    """
    for alarm in _alarms(synthesise(stage=stage)):
        assert len(_metrics(alarm)) <= 10
        (period,) = {metric["Period"] for metric in _metrics(alarm)}
        assert period * alarm["EvaluationPeriods"] <= 86_400


def test_the_stage_on_the_embedded_aws_has_only_alarms_on_one_metric(synthesise: Synthesise) -> None:
    local = synthesise(stage="local")
    assert not list(local.of_type("AWS::CloudWatch::CompositeAlarm"))
    assert len(_alarms(local)) > 8
    assert all("Metrics" not in alarm for alarm in _alarms(local))


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
    "metric",
    [
        Metric.NUDGED,
        Metric.UNDELIVERABLE,
        Metric.UNAVAILABLE,
        Metric.STRAY_THREADS,
        Metric.NOT_ACCEPTED,
        Metric.BROKEN_JOB_FILES,
    ],
)
def test_one_alarm_adds_the_metric_of_all_lanes(dev: Synthesised, metric: Metric) -> None:
    (alarm,) = (alarm for alarm in _alarms(dev) if metric in _names(alarm))
    assert alarm["Threshold"] == 0
    lanes = [
        dimension["Value"]
        for read in _metrics(alarm)
        if read["MetricName"] == metric
        for dimension in read["Dimensions"]
        if dimension["Name"] == "lane"
    ]
    assert sorted(lanes) == sorted(Lane)


def test_alarms_call_reconcile_when_messages_may_be_lost_and_never_for_what_reconcile_causes(dev: Synthesised) -> None:
    ((_, subscription),) = dev.of_type("AWS::SNS::Subscription")
    assert subscription["Protocol"] == "lambda"
    function = dict(dev.of_type("AWS::Lambda::Function"))[dev.behind(subscription["Endpoint"])]
    assert function["Handler"] == "tidemill.entrypoints.reconcile.handle"
    assert subscription["FilterPolicyScope"] == "MessageBody"
    assert subscription["FilterPolicy"].keys() == {"AlarmName", "NewStateValue"}
    assert subscription["FilterPolicy"]["NewStateValue"] == ["ALARM", "OK"]
    alarms = dict(dev.of_type("AWS::CloudWatch::Alarm"))
    calling = [alarms[name["Ref"]] for name in subscription["FilterPolicy"]["AlarmName"]]
    assert set().union(*map(_names, calling)) == MESSAGES | {Metric.PASSED_OVER}
    assert {alarm["AlarmDescription"].rpartition("#")[2] for alarm in calling} == {"dead-jobs", "unpublished-records"}
    assert calling == [alarm for alarm in _alarms(dev) if "OKActions" in alarm]
    assert all(alarm["OKActions"] == alarm["AlarmActions"] for alarm in calling)
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


def test_every_alarm_links_to_a_heading_of_the_runbook(dev: Synthesised) -> None:
    text = (ROOT / "docs" / "operations" / "runbook.md").read_text()
    anchors = {re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in re.findall(r"(?m)^#+ (.*)$", text)}
    linked = Counter(
        alarm["AlarmDescription"].rpartition("docs/operations/runbook.md#")[2] for alarm in _all_alarms(dev)
    )
    # The app has no source of events.
    assert linked.keys() == set(Heading) - {Heading.EVENT_SOURCE}
    assert linked.keys() <= anchors


def test_alarms_link_to_the_runbook_of_the_setting(synthesise: Synthesise) -> None:
    app = synthesise(stage="dev", runbook_url="https://wiki.example/runbook")
    assert all("What to do: https://wiki.example/runbook#" in alarm["AlarmDescription"] for alarm in _alarms(app))


def test_alarms_can_publish_to_the_topic_and_only_over_tls(dev: Synthesised) -> None:
    # With the AWS-managed key an alarm could not publish.
    assert ["KmsMasterKeyId" in topic for _, topic in dev.of_type("AWS::SNS::Topic")] == [False, False]
    policies = [policy["PolicyDocument"]["Statement"] for _, policy in dev.of_type("AWS::SNS::TopicPolicy")]
    assert len(policies) == 2
    for policy in policies:
        statements = {statement["Effect"]: statement for statement in policy}
        assert statements["Allow"]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        assert statements["Allow"]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
        assert statements["Deny"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize(("setting", "topic"), [("alarm_email", PAGES), ("ticket_email", TICKETS)])
def test_the_address_of_the_setting_receives_mail(synthesise: Synthesise, setting: str, topic: str) -> None:
    app = synthesise(stage="dev", **{setting: "ops@example.com"})
    mails = [each for _, each in app.of_type("AWS::SNS::Subscription") if each["Protocol"] == "email"]
    assert [(each["Endpoint"], each["TopicArn"]["Ref"].startswith(topic)) for each in mails] == [
        ("ops@example.com", True)
    ]


@pytest.mark.parametrize(
    ("stage", "settings", "without"),
    [
        ("dev", {}, ["pages", "tickets"]),
        ("dev", {"alarm_email": "a@example.com"}, ["tickets"]),
        ("dev", {"alarm_email": "a@example.com", "ticket_email": "b@example.com"}, []),
        ("local", {}, []),
    ],
)
def test_synth_warns_of_a_topic_without_subscriber(
    synthesise: Synthesise, stage: str, settings: dict[str, str], without: list[str]
) -> None:
    assert [
        kind
        for message in synthesise(stage=stage, **settings).warnings
        for kind in re.findall(r"No address receives the (\w+): set -c", message)
    ] == without


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
                    Metric.SUBMISSIONS_FAILED,
                    Metric.ITEMS_REFUSED,
                    Metric.SUBMISSIONS_SHED,
                    Metric.SUBMISSIONS_DEFERRED,
                    Metric.SUBMISSIONS_PAUSED,
                    Metric.SUBMISSIONS_OVER_QUOTA,
                    Metric.STRAIN_LEVEL,
                    Metric.RECONCILE_AGE,
                    Metric.RECONCILE_DURATION,
                ),
                *(Metric.RECONCILE_ITEMS, Metric.RECONCILE_SEGMENTS, Metric.DRIFTED, Metric.BREAKER_OPENED),
                *(Metric.WRITES_THROTTLED, Metric.RECORDS_CHANGED),
                Metric.BREAKER_OPEN,
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


@pytest.mark.parametrize(("setting", "reported"), [("on", True), ("off", False)])
def test_a_stage_can_let_dynamodb_report_the_hottest_keys_of_the_table_and_its_indexes(
    synthesise: Synthesise, setting: str, *, reported: bool
) -> None:
    (jobs,) = (
        table
        for _, table in synthesise(stage="dev", contributor_insights=setting).of_type("AWS::DynamoDB::Table")
        if "GlobalSecondaryIndexes" in table
    )
    for each in (jobs, *jobs["GlobalSecondaryIndexes"]):
        assert each.get("ContributorInsightsSpecification", {"Enabled": False}) == {"Enabled": reported}


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_a_synth_warns_of_nothing_but_topics_without_an_address(synthesise: Synthesise, stage: str) -> None:
    """Other warnings hide these two."""
    warnings = synthesise(stage=stage).warnings
    assert warnings
    assert [each for each in warnings if not each.startswith("No address receives the")] == []


def test_no_alarm_evaluates_a_metric_of_dynamodb_which_would_ignore_missing_data(prod: Synthesised) -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html."""
    alarms = [alarm for _, alarm in prod.of_type("AWS::CloudWatch::Alarm")]
    assert alarms
    assert not [alarm["AlarmDescription"] for alarm in alarms if "AWS/DynamoDB" in json.dumps(alarm)]
