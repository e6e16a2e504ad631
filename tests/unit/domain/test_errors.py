"""What each error says and carries."""

import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import a_job
from tidemill.domain.attempt.return_values import Continue, GiveUp, Snooze
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import (
    BatchCallError,
    BreakerOpenError,
    DuplicateJobTypeError,
    Fault,
    InvalidPayloadError,
    JobFileError,
    MissingInput,
    MissingResourceError,
    NewerSchemaError,
    NotAllowedNowError,
    OtherEpochError,
    PayloadTooLargeError,
    QuotaExceededError,
    RetryAfter,
    StepsChangedError,
    SubmissionPausedError,
    SubmissionShedError,
    TidemillError,
    TransactionTooLargeError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.states import State
from tidemill.domain.time_constants import EPOCH, LONGEST_SPAN, MILLISECOND

DEAD = a_job(state=State.DEAD)
CAUSE = KeyError("a")


@pytest.mark.parametrize(
    ("make", "text", "carried"),
    [
        (lambda: RetryAfter(90), "again in 90 s", {}),
        (lambda: RetryAfter(90, "busy"), "busy", {}),
        (lambda: BreakerOpenError("payments"), "the breaker payments is open", {"name": "payments"}),
        (
            lambda: MissingInput("rates", after=MILLISECOND, most=5),
            "the input rates is missing",
            {"name": "rates", "after": MILLISECOND, "most": 5},
        ),
        (
            lambda: StepsChangedError(["a", "b"], ["c"]),
            (
                "the steps of this job type have changed: let the old version finish its jobs first, or give the type "
                "a new name; recorded: a, b; asked for: c"
            ),
            {"recorded": ("a", "b"), "asked": ("c",)},
        ),
        (
            lambda: BatchCallError(CAUSE, 3),
            "KeyError: 'a'; the handler had 3 jobs, and each runs alone next",
            {"error": CAUSE, "__cause__": CAUSE},
        ),
        (lambda: WriteRefusedError("settle", None), "settle refused by a missing document", {"write": "settle"}),
        (lambda: WriteRefusedError("settle", DEAD), "settle refused by state dead", {"current": DEAD}),
        (
            lambda: MissingResourceError("no table"),
            (
                "no table; check the name, the account and the region: "
                "the outputs JobsTable and FilesBucket of the stack name its resources"
            ),
            {},
        ),
        (
            lambda: TransactionTooLargeError(101, 100),
            (
                "the settle with its writes and follow-up jobs needs 101 transaction entries, "
                "but the limit is 100; return Continue and do it in parts"
            ),
            {},
        ),
        (lambda: NotAllowedNowError("cancelled", DEAD), "a job that is dead cannot be cancelled", {"current": DEAD}),
        (
            lambda: UnknownJobTypeError("c", ("b", "a")),
            "unknown job type 'c'; known types: a, b",
            {"known": ("b", "a")},
        ),
        (
            lambda: UnknownJobTypeError("mail.welcom", ("mail.send", "mail.welcome")),
            "unknown job type 'mail.welcom'; did you mean 'mail.welcome'? known types: mail.send, mail.welcome",
            {"similar": "mail.welcome", "summary": "unknown job type 'mail.welcom'; did you mean 'mail.welcome'?"},
        ),
        (
            lambda: UnknownJobTypeError("mail.other", ("mail.send",)),
            "unknown job type 'mail.other'; known types: mail.send",
            {"similar": None, "summary": "unknown job type 'mail.other'"},
        ),
        (lambda: UnknownJobTypeError("c", ()), "unknown job type 'c'; known types: none", {"name": "c"}),
        (
            lambda: UnloadedJobTypeError("mail.send", ("a",), "mail.py, line 3: no such name"),
            "job type 'mail.send' is not loaded: mail.py, line 3: no such name",
            {"name": "mail.send", "known": ("a",), "fault": "mail.py, line 3: no such name"},
        ),
        (lambda: JobFileError("mail.py: broken", ["mail.send"]), "mail.py: broken", {"names": ("mail.send",)}),
        (lambda: DuplicateJobTypeError("twice"), "twice", {"names": ()}),
        (
            lambda: PayloadTooLargeError(3, 2),
            "the payload is 3 bytes as compact ASCII JSON; the limit is 2 bytes",
            {"size_bytes": 3, "limit_bytes": 2},
        ),
        (
            lambda: PayloadTooLargeError(3, 2, what="data"),
            "the data is 3 bytes as compact ASCII JSON; the limit is 2 bytes",
            {"size_bytes": 3, "limit_bytes": 2},
        ),
        (
            lambda: InvalidPayloadError([Fault("/a", "no"), Fault("", "bad")]),
            "/a: no; bad",
            {"faults": (Fault("/a", "no"), Fault("", "bad"))},
        ),
        (
            lambda: NewerSchemaError("document", 4, 3),
            "a document of schema 4; this code reads 3",
            {"schema": 4, "known": 3},
        ),
        (
            lambda: SubmissionPausedError("lane", MILLISECOND),
            "an operator has paused the lane of this job and refuses new ones; submit it again later",
            {"scope": "lane", "retry_after": MILLISECOND},
        ),
        (
            lambda: SubmissionShedError("mail.send", level=2, retry_after=MILLISECOND),
            "jobs of type mail.send are refused while the service is under strain; submit it again later",
            {"type": "mail.send", "level": 2, "retry_after": MILLISECOND},
        ),
        (
            lambda: QuotaExceededError(count=1, period=timedelta(minutes=1), known=3, retry_after=MILLISECOND),
            "the quota of 1 job in 60 s is used up; submit the job again later",
            {"count": 1, "period": timedelta(minutes=1), "known": 3, "retry_after": MILLISECOND},
        ),
        (
            lambda: QuotaExceededError(count=2, period=timedelta(seconds=1.5), known=2, retry_after=MILLISECOND),
            "the quota of 2 jobs in 1.5 s is used up; submit the job again later",
            {"count": 2, "known": 2},
        ),
        (
            lambda: UnknownJobTypeError("mail.sendd", ("mail.send", "mail.send2", "mail.send3")),
            "unknown job type 'mail.sendd'; did you mean 'mail.send'? known types: mail.send, mail.send2, mail.send3",
            {"similar": "mail.send"},
        ),
    ],
)
def test_an_error_says_and_carries_its_details(
    make: Callable[[], TidemillError], text: str, carried: dict[str, Any]
) -> None:
    error = make()

    assert str(error) == text
    assert {name: getattr(error, name) for name in carried} == carried


@pytest.mark.parametrize(("most", "allowed"), [(0, False), (1, True)])
def test_a_missing_input_allows_one_wait_at_least(most: int, *, allowed: bool) -> None:
    if allowed:
        assert MissingInput("rates", after=MILLISECOND, most=most).most == most
        return
    with pytest.raises(ValueError, match="most must be at least 1; got 0"):
        MissingInput("rates", after=MILLISECOND, most=most)


@pytest.mark.parametrize(
    ("name", "after"), [("Rates!", MILLISECOND), ("rates", -MILLISECOND), ("rates", LONGEST_SPAN + MILLISECOND)]
)
def test_a_missing_input_has_the_name_of_a_signal_and_a_time(name: str, after: timedelta) -> None:
    with pytest.raises(ValueError, match=r"invalid signal name 'Rates!'|after must be from 0 to 366 days"):
        MissingInput(name, after=after)


def test_a_missing_input_allows_three_waits_unless_the_handler_says_otherwise() -> None:
    assert MissingInput("rates", after=MILLISECOND).most == 3


@pytest.mark.parametrize(
    ("seconds", "delay"),
    [
        (-1, timedelta(0)),
        (1.5, timedelta(seconds=1.5)),
        (40 * 86_400, timedelta(days=30)),
        (math.inf, timedelta(days=30)),
        (math.nan, timedelta(days=30)),
    ],
)
def test_a_retry_comes_within_thirty_days_and_no_number_is_the_longest_wait(seconds: float, delay: timedelta) -> None:
    assert RetryAfter(seconds).delay == delay


NOT_SECONDS = ["5", timedelta(seconds=5), True, False, None, [5]]


@pytest.mark.parametrize("seconds", NOT_SECONDS)
def test_a_delay_that_is_not_a_number_of_seconds_is_refused(seconds: Any) -> None:
    said = f"RetryAfter takes seconds as a number, such as RetryAfter(30); got {seconds!r}"
    with pytest.raises(TypeError, match=re.escape(said)):
        RetryAfter(seconds)


@pytest.mark.parametrize("most", [True, "3", 2.5, 0, -1])
def test_a_number_of_waits_is_a_whole_number_above_0(most: Any) -> None:
    with pytest.raises(ValueError, match=r"most (is .*; it must be a whole number|must be at least 1; got)"):
        MissingInput("rates", after=MILLISECOND, most=most)


@pytest.mark.parametrize(("epoch", "later"), [(2, True), (0, False)])
def test_a_message_of_another_epoch_says_which_side_is_the_older_one(epoch: int, *, later: bool) -> None:
    error = OtherEpochError(epoch, 1)

    assert (str(error), error.later) == (f"a message of epoch {epoch}; this function has epoch 1", later)


@pytest.mark.parametrize(("length", "kept"), [(288, 288), (289, 288)])
def test_the_text_of_an_error_names_its_class_and_is_cut_at_300_characters(length: int, kept: int) -> None:
    assert error_text(ValueError("x" * length)) == f"ValueError: {'x' * kept}"


@pytest.mark.parametrize("after", [-MILLISECOND, LONGEST_SPAN + MILLISECOND])
def test_a_wait_has_bounds(after: timedelta) -> None:
    with pytest.raises(ValueError, match="after must be from 0 to 366 days"):
        Snooze(after)
    with pytest.raises(ValueError, match="after must be from 0 to 366 days"):
        Continue(after=after)
    assert Snooze(LONGEST_SPAN).after == Continue(after=LONGEST_SPAN).after
    assert Snooze(timedelta(0)).after == Continue().after


def test_a_wrong_kind_of_value_is_refused() -> None:
    with pytest.raises(TypeError, match="after must be a timedelta"):
        Snooze(30)  # type: ignore[arg-type]  # the fault
    with pytest.raises(TypeError, match="after must be a timedelta"):
        Continue(after=30)  # type: ignore[arg-type]  # the fault
    with pytest.raises(TypeError, match="GiveUp takes its reason"):
        GiveUp(3)  # type: ignore[arg-type]  # the fault


def test_points_of_time_are_those_of_the_store() -> None:
    assert EPOCH.timestamp() == 0
    assert (MILLISECOND.total_seconds(), LONGEST_SPAN.days) == (0.001, 366)


def test_an_invalid_payload_lists_its_first_faults_and_that_there_are_more() -> None:
    one = InvalidPayloadError([Fault("/a", "is wrong")] * 300)
    many = InvalidPayloadError([Fault(f"/a/{number}", "is wrong") for number in range(10_000)])

    assert len(one.faults) == 300
    assert many.faults[0] == Fault("/a/0", "is wrong")
    assert many.faults[-1] == Fault("", "there are more faults")
    assert 300 < len(many.faults) < 500
    assert str(many).endswith("; there are more faults")
    assert InvalidPayloadError(many.faults).faults == many.faults


def test_the_faults_of_an_invalid_payload_fill_their_bound_to_the_last_character() -> None:
    """Each has 4,096 characters as JSON text."""
    one, other, longer = (Fault(path, "x" * size) for path, size in (("/a", 4_086), ("/b", 4_086), ("/b", 4_087)))

    assert InvalidPayloadError([one, other]).faults == (one, other)
    assert InvalidPayloadError([one, longer]).faults == (one, Fault("", "there are more faults"))


def test_a_fault_of_a_member_with_a_very_long_name_has_the_path_of_the_member_around_it() -> None:
    refused = InvalidPayloadError([Fault("/payload/" + "x" * 9_000, "y" * 9_000), Fault("/" + "x" * 499, "z")])

    assert refused.faults == (Fault("/payload", "y" * 4096), Fault("/" + "x" * 499, "z"))
