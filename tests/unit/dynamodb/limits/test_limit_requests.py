"""What each write of a limit item changes, and on which item it insists."""

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import LEASE, NOW, SECOND
from tests.support.said_requests import said
from tidemill.application.ports import LimitSlot
from tidemill.aws.attribute_values import milliseconds, seconds
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive
from tidemill.domain.limits.limit_state import RESERVED, LimitState, Turn, burst, interval, run_name, slack
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH, MICROSECOND
from tidemill.domain.waiting.pauses import Drain
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.limits.limit_item import LIMIT_PREFIX
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.names import JOB_KEY

RATE = Rate(count=2, period=timedelta(minutes=1))
HALF = timedelta(seconds=30)
PACED = Limit(rate=RATE)
BOTH = Limit(concurrency=2, rate=RATE)
ADAPTIVE = Limit(adaptive=Adaptive(floor=1, ceiling=4, target_seconds=1))
SLOT = LimitSlot(line=Line.for_limit("a"), limit=Limit(concurrency=2), token="t", until=NOW + LEASE, job=("ada", "j"))
RELEASED = replace(SLOT, released=True)
BREAKER = Line.for_breaker("a")
OWN, RESERVATION = run_name("t"), SLOT.reservation
#: The time of `old` is over.
HELD = LimitState(
    held={"old": NOW - SECOND, "b": NOW + SECOND, RESERVATION: NOW + SECOND}, last_at=NOW - SECOND, adapted=None
)
MEASURED = replace(HELD, adapted=Adapted(allowed=2, falls=1))


def ms(at: datetime) -> str:
    return str(milliseconds(at)["N"])


def us(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND


KEPT = f"expires_at = {seconds(NOW + timedelta(days=2))['N']}"
FREE = f"(attribute_not_exists(promised) OR promised <= {us(NOW)})"
ONCE = "(attribute_not_exists(last_run) OR last_run <> t)"
ENTERED = f"held.{OWN} = {ms(NOW + LEASE)}"
NOT_YET = f"attribute_not_exists(held.{OWN})"
OVER = f"held.old <= {ms(NOW)}"
PACE = "spacing = 30000000"
TURNS = [Turn(reservation="+x", due=NOW), Turn(reservation="+y", due=NOW + SECOND)]
MARKED = {"attention = lines#3", f"attention_at = {ms(NOW)}", "last = ada#j"}

Write = Callable[[], Mapping[str, Any] | None]

WRITES: dict[str, tuple[Write, set[str], set[str], list[str]]] = {
    "enter": (
        partial(limit_item.enter, SLOT, HELD, now=NOW),
        {KEPT, ENTERED},
        {"held.old"},
        # Two slots, of which one was over: two at most before, two after.
        ["attribute_exists(held)", OVER, NOT_YET, "size(held) <= 2"],
    ),
    "enter with a reservation": (
        partial(limit_item.enter, RELEASED, HELD, now=NOW),
        {KEPT, ENTERED},
        {"held.old", f"held.{RESERVATION}"},
        ["attribute_exists(held)", f"attribute_exists(held.{RESERVATION})", OVER, NOT_YET, "size(held) <= 3"],
    ),
    "enter with a reservation that is over": (
        partial(limit_item.enter, RELEASED, LimitState(held={RESERVATION: NOW}), now=NOW),
        {KEPT, ENTERED},
        {f"held.{RESERVATION}"},
        ["attribute_exists(held)", f"attribute_exists(held.{RESERVATION})", NOT_YET, "size(held) <= 2"],
    ),
    "enter first": (
        partial(limit_item.enter, SLOT, LimitState(held=None), now=NOW),
        {KEPT, f"held = {{'{OWN}': {{'N': '{ms(NOW + LEASE)}'}}}}"},
        set(),
        ["attribute_not_exists(held)"],
    ),
    "enter an idle rate": (
        partial(limit_item.enter, replace(SLOT, limit=PACED), LimitState(), now=NOW),
        {KEPT, PACE, "last_run = t", f"arrival = {us(NOW + HALF)}"},
        set(),
        [ONCE, f"(attribute_not_exists(arrival) OR arrival <= {us(NOW)})", FREE],
    ),
    "enter a rate that is idle from now on": (
        partial(limit_item.enter, replace(SLOT, limit=PACED), LimitState(arrival=NOW), now=NOW),
        {KEPT, PACE, "last_run = t", f"arrival = {us(NOW + HALF)}"},
        set(),
        [ONCE, f"(attribute_not_exists(arrival) OR arrival <= {us(NOW)})", FREE],
    ),
    "enter a rate in use": (
        partial(limit_item.enter, replace(SLOT, limit=PACED), LimitState(arrival=NOW + SECOND), now=NOW),
        {KEPT, PACE, "last_run = t", "arrival = arrival + 30000000"},
        set(),
        [ONCE, f"arrival > {us(NOW)}", f"arrival <= {us(NOW + burst(RATE))}", FREE],
    ),
    # The times until now were promised to jobs such as this one.
    "enter a rate as released": (
        partial(limit_item.enter, replace(RELEASED, limit=PACED), LimitState(arrival=NOW + SECOND), now=NOW),
        {KEPT, PACE, "last_run = t", "arrival = arrival + 30000000"},
        set(),
        [ONCE, f"arrival > {us(NOW)}", f"arrival <= {us(NOW + burst(RATE) + slack(RATE))}"],
    ),
    "enter after the rate has changed": (
        partial(
            limit_item.enter,
            replace(SLOT, limit=PACED),
            LimitState(arrival=NOW + timedelta(days=1), promised=NOW + timedelta(days=1), spacing=SECOND),
            now=NOW,
        ),
        {KEPT, PACE, "last_run = t", f"arrival = {us(NOW + 2 * HALF)}", f"promised = {us(NOW)}"},
        set(),
        [ONCE, f"arrival = {us(NOW + timedelta(days=1))}", f"promised = {us(NOW + timedelta(days=1))}"],
    ),
    "enter after the rate has changed, with no time promised": (
        partial(
            limit_item.enter,
            replace(SLOT, limit=PACED),
            LimitState(arrival=NOW + timedelta(days=1), spacing=SECOND),
            now=NOW,
        ),
        {KEPT, PACE, "last_run = t", f"arrival = {us(NOW + 2 * HALF)}"},
        set(),
        [ONCE, f"arrival = {us(NOW + timedelta(days=1))}", FREE],
    ),
    "enter an adaptive limit": (
        partial(limit_item.enter, replace(SLOT, limit=ADAPTIVE), MEASURED, now=NOW),
        {KEPT, ENTERED},
        {"held.old"},
        ["attribute_exists(held)", OVER, NOT_YET, "falls = 1", "size(held) <= 2"],
    ),
    # The slot passes from the job to its run, also after a decrease.
    "enter an adaptive limit with a reservation": (
        partial(limit_item.enter, replace(RELEASED, limit=ADAPTIVE), MEASURED, now=NOW),
        {KEPT, ENTERED},
        {"held.old", f"held.{RESERVATION}"},
        ["attribute_exists(held)", f"attribute_exists(held.{RESERVATION})", OVER, NOT_YET],
    ),
    "enter an adaptive limit first": (
        partial(limit_item.enter, replace(SLOT, limit=ADAPTIVE), LimitState(held=None), now=NOW),
        {KEPT, "allowed = 1", "falls = 0", f"held = {{'{OWN}': {{'N': '{ms(NOW + LEASE)}'}}}}"},
        set(),
        ["attribute_not_exists(held)", "attribute_not_exists(allowed)"],
    ),
    "enter a limit that has become adaptive": (
        partial(limit_item.enter, replace(SLOT, limit=ADAPTIVE), HELD, now=NOW),
        {KEPT, ENTERED, "allowed = 1", "falls = 0"},
        {"held.old"},
        ["attribute_exists(held)", OVER, NOT_YET, "attribute_not_exists(allowed)", "size(held) <= 1"],
    ),
    "enter an adaptive limit unread": (
        partial(limit_item.enter, replace(SLOT, limit=ADAPTIVE), LimitState(held={}, blind=True), now=NOW),
        {KEPT, ENTERED},
        set(),
        [
            *("attribute_exists(held)", NOT_YET, "attribute_exists(allowed)", "size(held) < 4"),
            "(size(held) < allowed OR size(held) < 1)",
        ],
    ),
    "give turns": (
        partial(
            limit_item.reserve,
            SLOT.line,
            replace(HELD, limit=BOTH, promised=NOW),
            [*TURNS, Turn(reservation="+z", due=NOW + 9 * SECOND, reserved=True)],
            leaving="b",
            now=NOW,
        ),
        {
            KEPT,
            f"held.+x = {ms(NOW + RESERVED)}",
            f"held.+y = {ms(NOW + SECOND + RESERVED)}",
            f"promised = {us(NOW + SECOND + HALF)}",
        },
        {"held.old", "held.b"},
        [
            *("attribute_exists(held)", "attribute_exists(held.b)", OVER),
            *("attribute_not_exists(held.+x)", "attribute_not_exists(held.+y)", "size(held) <= 2"),
            f"promised = {us(NOW)}",
        ],
    ),
    "give a turn of a rate": (
        partial(limit_item.reserve, SLOT.line, LimitState(limit=PACED, held={}), TURNS[:1], leaving=None, now=NOW),
        {KEPT, f"promised = {us(NOW + HALF)}"},
        set(),
        ["attribute_not_exists(promised)"],
    ),
    # Nothing else writes the item, so it must not expire while jobs wait.
    "give a turn of a breaker": (
        partial(limit_item.reserve, BREAKER, LimitState(limit=PACED), TURNS[:1], leaving=None, now=NOW),
        {f"promised = {us(NOW + HALF)}"},
        set(),
        ["attribute_not_exists(promised)"],
    ),
    "give more turns than an adaptive limit loses": (
        partial(limit_item.reserve, SLOT.line, replace(MEASURED, limit=ADAPTIVE), TURNS, leaving="b", now=NOW),
        {KEPT, f"held.+x = {ms(NOW + RESERVED)}", f"held.+y = {ms(NOW + SECOND + RESERVED)}"},
        {"held.old", "held.b"},
        [
            *("attribute_exists(held)", "attribute_exists(held.b)", OVER),
            *("attribute_not_exists(held.+x)", "attribute_not_exists(held.+y)", "falls = 1", "size(held) <= 2"),
        ],
    ),
    # A slot that one hands to the next adds none, so the number does not matter.
    "hand a slot of an adaptive limit on": (
        partial(limit_item.reserve, SLOT.line, replace(MEASURED, limit=ADAPTIVE), TURNS[:1], leaving="b", now=NOW),
        {KEPT, f"held.+x = {ms(NOW + RESERVED)}"},
        {"held.old", "held.b"},
        ["attribute_exists(held)", "attribute_exists(held.b)", OVER, "attribute_not_exists(held.+x)"],
    ),
    "list a line": (
        partial(limit_item.mark, replace(SLOT, limit=BOTH), LimitState(last_at=NOW - SECOND), now=NOW),
        {KEPT, *MARKED, f"last_at = {ms(NOW)}", "slots = 2", "count = 2", "period = 60000000"},
        {"adaptive"},
        [f"(attribute_not_exists(last_at) OR last_at <= {ms(NOW)})"],
    ),
    "list a line again": (
        partial(limit_item.mark, RELEASED, replace(HELD, marked=True, last_at=NOW + SECOND), now=NOW),
        {KEPT, "last = ada#j", f"last_at = {ms(NOW + SECOND)}", "slots = 2"},
        {"adaptive", "count", "period", f"held.{RESERVATION}"},
        [
            f"(attribute_not_exists(last_at) OR last_at <= {ms(NOW + SECOND)})",
            *("attribute_exists(attention)", "attribute_exists(held)"),
        ],
    ),
    # The job has come back by itself. Its reservation is for its release.
    "list a line beside an own reservation": (
        partial(limit_item.mark, SLOT, HELD, now=NOW),
        {KEPT, *MARKED, f"last_at = {ms(NOW)}", "slots = 2"},
        {"adaptive", "count", "period"},
        [f"(attribute_not_exists(last_at) OR last_at <= {ms(NOW)})"],
    ),
    "list the line of a breaker": (
        partial(limit_item.mark, replace(SLOT, line=BREAKER, limit=PACED), LimitState(), now=NOW),
        {*MARKED, f"last_at = {ms(NOW)}", "count = 2", "period = 60000000"},
        {"adaptive", "slots", "expires_at"},
        [f"(attribute_not_exists(last_at) OR last_at <= {ms(NOW)})"],
    ),
    # An earlier pause of the same name has ended, and let its item expire.
    "list the line of a pause that ends": (
        partial(limit_item.mark_drain, Drain(line=SLOT.line, rate=RATE, ends_at=NOW)),
        {"attention = lines#3", f"attention_at = {ms(NOW)}", f"last_at = {ms(NOW)}", "count = 2", "period = 60000000"},
        {"expires_at"},
        [],
    ),
    "promise a time": (
        partial(limit_item.promise, replace(SLOT, limit=PACED), RATE, LimitState(), NOW + SECOND, now=NOW),
        {KEPT, f"promised = {us(NOW + SECOND + interval(RATE))}"},
        set(),
        ["attribute_not_exists(promised)"],
    ),
    "clear a line": (
        partial(limit_item.clear, SLOT.line, LimitState(last_at=NOW)),
        set(),
        {"attention", "attention_at", "last", "last_at"},
        [f"last_at = {ms(NOW)}"],
    ),
    "clear the line of a breaker": (
        partial(limit_item.clear, BREAKER, LimitState(last_at=NOW)),
        {KEPT},
        {"attention", "attention_at", "last", "last_at"},
        [f"last_at = {ms(NOW)}"],
    ),
    "leave": (
        partial(limit_item.leave, SLOT),
        set(),
        {f"held.{OWN}"},
        ["attribute_exists(held)", f"attribute_exists(held.{OWN})", "attribute_not_exists(attention)"],
    ),
    "give a slot back": (
        partial(limit_item.vacate, SLOT.line, "x"),
        set(),
        {"held.x"},
        ["attribute_exists(held)", "attribute_exists(held.x)"],
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_changes_what_it_is_for_and_insists_on_what_was_read(name: str) -> None:
    write, sets, removes, conditions = WRITES[name]

    assert said(write()) == (sets, removes, conditions)


@pytest.mark.parametrize(("limit", "turns"), [(BOTH, []), (BOTH, [replace(TURNS[0], reserved=True)]), (None, TURNS)])
def test_nothing_is_written_for_turns_that_were_given_or_have_no_limit(limit: Limit | None, turns: list[Turn]) -> None:
    assert limit_item.reserve(SLOT.line, replace(HELD, limit=limit), turns, leaving="b", now=NOW) is None


@pytest.mark.parametrize("cause", [Cause.LIMIT, Cause.PAUSE, Cause.TYPE, Cause.BREAKER])
def test_the_key_of_an_item_tells_its_line(cause: Cause) -> None:
    line = Line(cause, "a")

    assert limit_item.line_of(limit_item.item_key(line)) == line
    assert limit_item.item_key(SLOT.line) == {JOB_KEY: {"S": f"{LIMIT_PREFIX}a"}}


def test_a_line_of_a_kind_that_a_newer_version_knows_is_looked_at_as_that_of_a_limit() -> None:
    assert limit_item.line_of({JOB_KEY: {"S": "!new#a"}}) == Line.for_limit("!new#a")


class Client:
    """Refuses the updates by an item, or grants them and returns it. Notes each condition."""

    def __init__(self, item: Any, *, grants: bool) -> None:
        self._item, self._grants = item, grants
        self.conditions: list[list[str]] = []

    def get_item(self, **_request: Any) -> Any:
        return {"Item": self._item}

    def update_item(self, **request: Any) -> Any:
        self.conditions.append(said(request)[2])
        if self._grants:
            return {"Attributes": self._item}
        refusal: Any = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}, "Item": self._item}
        raise ClientError(refusal, "UpdateItem")


def limits_over(client: Any) -> DynamoLimits:
    return DynamoLimits(client, table="jobs")


def test_a_run_does_not_wait_in_a_line_that_it_cannot_list() -> None:
    client = Client({"held": {"M": {}}}, grants=False)

    with pytest.raises(StoreUnavailableError, match="other workers write the item of the line"):
        limits_over(client).acquire(SLOT, now=NOW)
    assert len(client.conditions) == 8


def test_a_run_waits_in_line_if_others_are_faster_each_time_and_one_has_listed_the_line() -> None:
    client = Client({"held": {"M": {}}, "attention": {"S": "lines#3"}, "last_at": {"N": ms(NOW)}}, grants=False)

    assert limits_over(client).acquire(SLOT, now=NOW) == SLOT.line
    assert len(client.conditions) == 4


@pytest.mark.parametrize(
    ("mark", "listed"),
    [
        ({"attention": {"S": "lines#3"}, "last_at": {"N": ms(NOW + SECOND)}}, True),
        ({"attention": {"S": "lines#3"}, "last_at": {"N": ms(NOW)}}, False),
        # Wake has taken the mark away meanwhile.
        ({"last_at": {"N": ms(NOW + SECOND)}}, False),
        ({}, False),
    ],
)
def test_a_line_that_a_later_job_has_listed_is_not_listed_again(mark: Mapping[str, Any], listed: bool) -> None:
    full = {"held": {"M": {name: {"N": ms(NOW + LEASE)} for name in ("a", "b")}}}
    client = Client({**full, **mark}, grants=False)

    with contextlib.suppress(StoreUnavailableError):
        limits_over(client).acquire(SLOT, now=NOW)

    assert (len(client.conditions) == 1) is listed


def test_an_adaptive_rate_is_entered_unread_only_if_its_number_stands() -> None:
    client = Client({"allowed": {"N": "2"}, "falls": {"N": "0"}}, grants=True)

    limits_over(client).acquire(replace(SLOT, limit=replace(ADAPTIVE, rate=RATE)), now=NOW)

    assert "attribute_exists(allowed)" in client.conditions[0]


def test_what_a_process_remembers_of_rates_outlives_a_thousand_lines_of_slots() -> None:
    client = Client({"arrival": {"N": str(us(NOW + SECOND))}, "held": {"M": {}}}, grants=True)
    limits = limits_over(client)
    limits.acquire(replace(SLOT, limit=PACED), now=NOW)
    for number in range(1_000):
        limits.acquire(replace(SLOT, line=Line.for_limit(f"slots {number}")), now=NOW)

    limits.acquire(replace(SLOT, limit=PACED), now=NOW)

    assert f"arrival > {us(NOW)}" in client.conditions[-1]


def test_a_process_remembers_a_rate_also_from_the_item_that_refused_it() -> None:
    client = Client({"arrival": {"N": str(us(NOW + SECOND))}}, grants=False)
    limits = limits_over(client)
    for tries in (0, 8):
        assert len(client.conditions) == tries
        with contextlib.suppress(StoreUnavailableError):
            limits.acquire(replace(SLOT, limit=PACED), now=NOW)

    assert [f"arrival > {us(NOW)}" in client.conditions[tries] for tries in (0, 8)] == [False, True]
