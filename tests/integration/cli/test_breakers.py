"""`breakers`, and what `status` says of a breaker and of a lowered limit."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, SECOND, a_job
from tests.support.parked_jobs import enter, park, park_only
from tidemill.aws import clients
from tidemill.domain.breakers import breaker as rules
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, ConcurrencyChange, RunSample, Trouble
from tidemill.domain.limits.limit_state import run_name
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.limits.limits import DynamoLimits

LINE = Line.for_breaker("payments")
FAILED = Breaker(name="payments", failures=5, calls=6)
OPEN = rules.opened(FAILED, probe_interval=timedelta(seconds=15), now=NOW)
SINCE = "2045-03-04 05:06:07Z"


def one(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def stored(cloud: Cloud, after: Breaker = OPEN) -> None:
    seen = Breaker(name=after.name)
    assert DynamoBreakers(clients.dynamodb(), table=cloud.table.name).move(seen, after)[0]


def listed(cloud: Cloud, *, jobs: int) -> None:
    """The line of the breaker, as wake sees it."""
    limits = DynamoLimits(clients.dynamodb(), table=cloud.table.name)
    limits.list_line(LINE, Rate(count=5, period=SECOND), job=("a", "b"), now=NOW)
    for _ in range(jobs):
        park_only(cloud.store, a_job(), LINE)


def lines_of(word: str) -> list[str]:
    shown = run("status").stdout.splitlines()
    at = next((number for number, line in enumerate(shown) if line.startswith(word)), len(shown))
    return shown[at : at + 2]


def test_the_status_shows_an_open_breaker_and_the_next_command(cloud: Cloud) -> None:
    stored(cloud)
    listed(cloud, jobs=2)
    opened, command = lines_of("BREAKER")
    assert opened == (
        f"BREAKER OPEN: payments since {SINCE} (5 of 6 calls failed), next probe 2045-03-04 05:06:22Z, 2 parked"
    )
    assert command == "  tidemill breakers payments"
    assert one("status")["breakers"] == [one("breakers")]


def test_a_breaker_whose_only_job_is_its_probe_is_shown(cloud: Cloud) -> None:
    probe = a_job()
    stored(cloud, rules.probing(replace(OPEN, reopened=1), probe, now=NOW, lease_end=NOW + SECOND))
    listed(cloud, jobs=0)
    (opened, _) = lines_of("BREAKER")
    assert opened.endswith("a probe runs now, reopened 1 time, 0 parked")
    assert opened.startswith("BREAKER HALF-OPEN: payments since")


def test_the_class_of_the_last_failure_of_an_open_breaker_is_shown(cloud: Cloud) -> None:
    stored(cloud, replace(OPEN, last_error="CardError"))
    listed(cloud, jobs=1)
    (opened, _) = lines_of("BREAKER")
    assert opened.endswith(", 1 parked: CardError")
    assert run("breakers").stdout.rstrip().endswith("  CardError")
    assert one("breakers")["last_error"] == "CardError"


def test_a_closed_breaker_is_shown_while_its_line_drains_and_not_after(cloud: Cloud) -> None:
    stored(cloud, rules.closed(OPEN, now=NOW + timedelta(minutes=1)))
    listed(cloud, jobs=0)
    assert lines_of("BREAKER") == []
    park_only(cloud.store, a_job(), LINE)
    assert lines_of("BREAKER")[0].startswith("BREAKER CLOSED: payments since 2045-03-04 05:07:07Z, 1 parked, which")


def test_a_forced_breaker_is_shown_with_its_record(cloud: Cloud) -> None:
    run("config", "set", "breakers.payments", '{"force": "open"}', "--reason", "maintenance", "--yes")
    forced, command = lines_of("BREAKER")
    assert forced.startswith("BREAKER FORCED OPEN: payments by arn:aws:sts:")
    assert forced.endswith(", until it is removed, 0 parked: maintenance")
    assert command == "  tidemill config set breakers.payments --remove"
    shown = one("breakers")
    assert (shown["forced"]["state"], shown["forced"]["reason"]) == ("open", "maintenance")
    assert shown["next_probe"] is None


def test_the_breakers_are_listed_with_their_figures(cloud: Cloud) -> None:
    stored(cloud)
    listed(cloud, jobs=1)
    title, row = run("breakers").stdout.splitlines()
    assert title.split("  ")[0] == "BREAKER"
    assert [cell.strip() for cell in row.split("  ") if cell.strip()] == [
        *("payments", "open", SINCE, "5 of 6", "0", "0", "2045-03-04 05:06:22Z", "1"),
        *("–", "–"),  # noqa: RUF001 - a dash, as in a printed table
    ]
    assert one("breakers") == {
        "name": "payments",
        "state": "open",
        "since": "2045-03-04T05:06:07.891Z",
        "failures": 5,
        "calls": 6,
        "probes_failed": 0,
        "reopened": 0,
        "last_error": None,
        "next_probe": "2045-03-04T05:06:22.891Z",
        "probe_job": None,
        "parked": 1,
        "parked_exact": True,
        "forced": None,
    }


def test_a_named_breaker_is_shown_while_it_is_closed(cloud: Cloud) -> None:
    stored(cloud)
    listed(cloud, jobs=1)
    shown = one("breakers", "mail")
    assert (shown["name"], shown["state"], shown["since"]) == ("mail", "closed", None)


@pytest.mark.usefixtures("cloud")
def test_without_breakers_one_line_says_so() -> None:
    assert run("breakers").stdout == "No job waits for a breaker, and none is forced.\n"
    assert run("breakers", "--json").stdout == ""


def test_the_status_shows_a_limit_below_its_ceiling(cloud: Cloud) -> None:
    limits = DynamoLimits(clients.dynamodb(), table=cloud.table.name)
    adaptive = Limit(adaptive=Adaptive(floor=1, ceiling=10, target_seconds=1))
    slot = enter(limits, a_job(), limit=adaptive)
    park(cloud.store, limits, adaptive)
    lowered = Adapted(allowed=1, falls=1, fell_at=NOW, why=Trouble.SLOW)
    sample = RunSample(entered=Adapted(allowed=1), taken=1, seconds=3)
    limits.vacate(slot.line, run_name(slot.token), ConcurrencyChange(lowered=lowered, sample=sample))
    (shown, _) = lines_of("LIMIT LOWERED")
    assert shown == (
        f"LIMIT LOWERED: the limit test.job#a lets 1 of 10 runs at once, lowered last at {SINCE} (slow), 1 parked"
    )
    (found,) = one("status")["lowered_limits"]
    assert (found["key"], found["runs"], found["ceiling"], found["why"]) == ("test.job#a", 1, 10, "slow")
