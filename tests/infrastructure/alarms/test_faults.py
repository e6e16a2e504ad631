"""Each fault fires its alarm within the bound that the catalogue states; each page within five minutes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Final

import pytest

from tests.infrastructure.alarms.faults import (
    BEGIN,
    DYING_TYPE,
    LASTS,
    MINUTES,
    NO_SUBMISSION,
    PAGES,
    TICKETS,
    Fault,
    accept_none,
    refuse,
)
from tests.infrastructure.alarms.installation import (
    CONCURRENCY,
    CONCURRENCY_QUOTA,
    Installation,
    of_api,
    of_function,
    of_queue,
    worker,
)
from tests.infrastructure.alarms.traces import Trace, healthy
from tidemill.cdk.alarms.alarm import PAGE, Severity
from tidemill.local.alarms import CompositeAlarm, Evaluator, State, Transition
from tidemill.names import Lane

#: The fault begins a second after the start of its minute.
BEGIN_SECONDS: Final = BEGIN * 60 + 1
SEED: Final = 7
#: The evaluation begins so long before the fault that `Established` is on and the longest window is full.
BEFORE: Final = 30
#: Settings of a stage whose callers send tokens.
TOKENS: Final = {"jwt_issuer": "https://issuer.example", "jwt_audience": "mill"}
(UNREACHED_SUBMIT,) = (fault for fault in PAGES if fault.what == "the API may not invoke submit")


def changes(
    installation: Installation, trace: Trace, alarms: set[str], *, additional_points: int
) -> Iterator[Transition]:
    """The changes of these alarms and of those that they read."""
    named = {alarm.name: alarm for alarm in installation.alarms}
    needed: set[str] = set()
    while alarms - needed:
        needed |= alarms
        read = (named[name] for name in needed)
        alarms = {child for alarm in read if isinstance(alarm, CompositeAlarm) for child in alarm.rule.children}
    evaluator = Evaluator(
        [alarm for alarm in installation.alarms if alarm.name in needed],
        trace.series(),
        additional_points=additional_points,
        quotas={CONCURRENCY: CONCURRENCY_QUOTA},
    )
    return evaluator.run(BEGIN - BEFORE, BEGIN + LASTS)


def seconds_until(installation: Installation, fault: Fault, alarm: str, *, additional_points: int = 2) -> int:
    """From the fault until the alarm fires, in whole minutes as CloudWatch evaluates it."""
    trace = _healthy().copy()
    fault.change(trace)
    found = changes(installation, trace, {alarm}, additional_points=additional_points)
    fired = next((change.minute for change in found if change.alarm.name == alarm and change.new is State.ALARM), None)
    assert fired, f"{alarm} never fired"
    assert fired > BEGIN, f"{alarm} fired before the fault"
    return fired * 60 - BEGIN_SECONDS


@cache
def _healthy() -> Trace:
    return healthy(SEED, days=3)


@pytest.mark.parametrize("fault", PAGES, ids=lambda fault: f"{fault.alarm}: {fault.what}")
@pytest.mark.parametrize("additional_points", [0, 2, 5])
def test_each_page_is_sent_within_five_minutes(
    installation: Installation, fault: Fault, additional_points: int
) -> None:
    for alarm in (fault.alarm, PAGE):
        assert seconds_until(installation, fault, alarm, additional_points=additional_points) <= 5 * 60


@pytest.mark.parametrize("fault", TICKETS, ids=lambda fault: f"{fault.alarm}: {fault.what}")
@pytest.mark.parametrize("additional_points", [0, 2, 5])
def test_each_ticket_is_sent_within_its_bound(installation: Installation, fault: Fault, additional_points: int) -> None:
    seconds = seconds_until(installation, fault, fault.alarm, additional_points=additional_points)
    assert timedelta(seconds=seconds) <= installation.entries[fault.alarm].within


def test_each_alarm_that_notifies_has_a_fault(installation: Installation) -> None:
    """The lanes default and bulk have the alarm of critical on an idle worker."""
    notifying = {name for name, entry in installation.entries.items() if entry.severity is not Severity.PART}
    tested = {fault.alarm for fault in (*PAGES, *TICKETS)}
    assert notifying - tested == {"IdleWorkerdefault", "IdleWorkerbulk"}
    assert tested <= notifying


def test_at_most_six_alarms_are_pages(installation: Installation) -> None:
    pages = {name for name, entry in installation.entries.items() if entry.severity is Severity.PAGE}
    assert pages == {fault.alarm for fault in PAGES}
    assert len(pages) == 6


def test_one_incident_is_one_page(installation: Installation) -> None:
    """With a disabled publisher and a flood, causes follow one another, and the page is published once."""
    trace = _healthy().copy()
    for fault in (PAGES[0], *(each for each in PAGES if each.what in {NO_SUBMISSION, DYING_TYPE})):
        fault.change(trace)
    names = {alarm.name for alarm in installation.alarms}
    found = list(changes(installation, trace, names, additional_points=2))
    published = [
        change for change in found if change.minute > BEGIN and any("Alarms" in each for each in change.actions)
    ]
    assert [change.alarm.name for change in published] == [PAGE]
    tickets = {change.alarm.name for change in found if any("Tickets" in each for each in change.actions)}
    assert {"LateCanary", "FailedSubmissions", "FailedJobs"} <= tickets


@pytest.mark.parametrize("additional_points", [0, 2, 5])
def test_refusals_that_an_operator_or_the_governor_wants_cause_no_page(
    installation: Installation, additional_points: int
) -> None:
    trace = _healthy().copy()
    refuse(trace)
    names = {alarm.name for alarm in installation.alarms}
    found = changes(installation, trace, names, additional_points=additional_points)
    fired = {change.alarm.name for change in found if change.minute > BEGIN and change.new is State.ALARM}
    assert fired == {"ApiErrors"}


def _full_of_long_runs(trace: Trace) -> None:
    """Each of ten workers runs for 14 minutes, and calls are counted at their start."""
    trace.drop(of_function("Invocations", worker(Lane.BULK)), after=BEGIN)
    for minute in MINUTES:
        trace.put(of_queue("ApproximateNumberOfMessagesVisible", f"Lane{Lane.BULK}Queue"), minute, 500.0)
        trace.put(of_function("ConcurrentExecutions", worker(Lane.BULK)), minute, 10.0)
        if minute % 14 == 0:
            trace.put(of_function("Invocations", worker(Lane.BULK)), minute, 10.0)


def _failing_query(trace: Trace) -> None:
    """A dashboard asks each minute, and no caller submits."""
    accept_none(trace)
    for function in ("Submit", "Query", "Control"):
        trace.drop(of_function("Invocations", function), after=BEGIN)
    for minute in MINUTES:
        trace.put(of_api(), minute, 2.0)
        trace.put(of_function("Invocations", "Query"), minute, 2.0)


@pytest.mark.parametrize("additional_points", [0, 2, 5])
def test_a_full_lane_whose_runs_are_long_is_not_idle(installation: Installation, additional_points: int) -> None:
    fault = Fault("IdleWorkerbulk", "", _full_of_long_runs)
    with pytest.raises(AssertionError, match="never fired"):
        seconds_until(installation, fault, fault.alarm, additional_points=additional_points)


@pytest.mark.parametrize("settings", [{"canary": "off"}, TOKENS], ids=["no canary", "tokens"])
def test_where_no_canary_calls_submit_a_failing_query_pages_no_operator(
    catalogue_of: Callable[..., Installation], settings: dict[str, str]
) -> None:
    installation = catalogue_of(**settings)
    with pytest.raises(AssertionError, match="never fired"):
        seconds_until(installation, Fault("FailedSubmissions", "", _failing_query), "FailedSubmissions")
    unreached = replace(UNREACHED_SUBMIT, change=_unreached_api)
    assert seconds_until(installation, unreached, "FailedSubmissions") <= 5 * 60


def _unreached_api(trace: Trace) -> None:
    """The API may invoke none of its functions."""
    UNREACHED_SUBMIT.change(trace)
    for function in ("Query", "Control"):
        trace.drop(of_function("Invocations", function), after=BEGIN)
