"""`click.enrich`, run by the attempt of a worker on a real store: each click is counted once, despite faults."""

import hashlib
import hmac
import json
from datetime import timedelta

import pytest

from shortener import click_tally
from shortener.click import CLICK
from shortener.click_table import Clicks
from shortener.names import CLICK_SORT_KEY, TTL_ATTRIBUTE, VISITORS
from tests.integration.shortener.conftest import REMAINING, SECRET, World, set_now
from tests.support.faulty_client import Fault, KilledError
from tidemill import StoreUnavailableError, Submission, composition
from tidemill.application.attempt.attempt_report import Ending
from tidemill.aws import clients
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.states import State

ADDRESS = "83.149.9.216"
FIREFOX = "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:26.0) Gecko/20100101 Firefox/26.0"


@pytest.fixture
def click(world: World) -> Job:
    """One click, submitted by the redirect."""
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    world.visit("spring", x_forwarded_for=ADDRESS, user_agent=FIREFOX, referer="https://news.example/story?who=me")
    (job,) = world.jobs()
    return job


def counted(world: World) -> int:
    clicks: int = world.stats("spring").json()["clicks"]
    assert clicks == len(world.clicks())
    return clicks


def test_a_click_is_counted_and_its_job_has_succeeded(world: World, click: Job) -> None:
    report = world.run(click)
    assert (report.ending, counted(world)) == (Ending.SUCCEEDED, 1)
    (job,) = world.jobs()
    assert json.loads(job.result or "") == {
        "country": "RU",
        "browser": "Firefox",
        "system": "Ubuntu",
        "device": "Other",
        "bot": False,
    }


def test_a_click_has_a_record_that_expires(world: World, click: Job) -> None:
    world.run(click)
    (record,) = world.clicks()
    at = click.created_at
    hashed = json.dumps([str(at.date()), "spring", ADDRESS])
    assert record == {
        "pk": {"S": "spring"},
        CLICK_SORT_KEY: {"S": f"click#{at.isoformat(timespec='milliseconds')}#{click.id}"},
        "at": {"N": str(round(at.timestamp() * 1000))},
        TTL_ATTRIBUTE: {"N": str(int(-(-(at + timedelta(days=90)).timestamp() // 1)))},
        "visitor": {"S": hmac.new(SECRET.encode(), hashed.encode(), hashlib.sha256).hexdigest()[:32]},
        "country": {"S": "RU"},
        "browser": {"S": "Firefox"},
        "system": {"S": "Ubuntu"},
        "device": {"S": "Other"},
        "bot": {"BOOL": False},
        "referrer": {"S": "news.example"},
    }


def test_a_click_of_an_earlier_version_is_counted_and_its_record_holds_no_more(world: World) -> None:
    """Its job holds the address, the user agent and the URL in full, and no hash."""
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    old = {"address": ADDRESS, "user_agent": FIREFOX, "referrer": "https://news.example/story?who=me"}
    submission = Submission(type=CLICK, payload={"code": "spring"} | old)
    world.run(composition.parts().submit(submission, tenant=VISITORS, trace="trace").job)
    (record,) = world.clicks()
    assert (record["country"], record["browser"], record["referrer"]) == (
        {"S": "RU"},
        {"S": "Firefox"},
        {"S": "news.example"},
    )
    assert "visitor" not in record


def test_the_job_of_a_click_is_kept_for_days_only(world: World, click: Job) -> None:
    world.run(click)
    (job,) = world.jobs()
    assert job.lifetime.expires_at is not None
    assert job.lifetime.expires_at - click.created_at < timedelta(days=4)


@pytest.mark.parametrize("referrer", ["", "no url", "https://[broken/", "android-app:", "https:///path"])
def test_a_click_without_address_or_site_is_counted(world: World, referrer: str) -> None:
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    world.visit("spring", x_forwarded_for="unknown", referer=referrer)
    world.run_all()
    (record,) = world.clicks()
    assert "visitor" not in record
    assert "referrer" not in record
    assert record["country"] == {"S": "??"}


def test_a_message_that_is_delivered_twice_counts_once(world: World, click: Job) -> None:
    world.run(click)
    report = world.run(click)
    assert (report.verdict, counted(world)) == (ClaimVerdict.DUPLICATE, 1)


def test_a_worker_whose_lease_was_lost_counts_nothing(world: World, click: Job) -> None:
    slow = world.attempt(click)
    assert slow.claim(remaining=timedelta(seconds=-10))
    outcome = slow.run()
    world.run(click)
    slow.finish(outcome)
    assert slow.report is not None
    assert (slow.report.ending, counted(world)) == (Ending.FENCED, 1)


@pytest.mark.parametrize(("fault", "clicks"), [(Fault.KILLED_BEFORE, 0), (Fault.KILLED_AFTER, 1)])
def test_a_worker_that_dies_at_the_settle_counts_the_click_if_it_was_written(
    world: World, click: Job, fault: Fault, clicks: int
) -> None:
    attempt = world.attempt(click)
    assert attempt.claim(remaining=timedelta(seconds=-10))
    outcome = attempt.run()
    world.client.faults = [fault]
    with pytest.raises(KilledError):
        attempt.finish(outcome)
    assert counted(world) == clicks
    world.run(click)
    assert counted(world) == 1


def test_after_an_outage_a_click_is_counted_by_the_run_that_succeeds(
    world: World, click: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise StoreUnavailableError("no response")

    with monkeypatch.context() as for_now:
        for_now.setattr(Clicks, "shard", failing)
        report = world.run(click)
    assert report.ending is Ending.HELD
    assert counted(world) == 0
    (job,) = world.jobs()
    due = job.due
    assert due
    set_now(monkeypatch, lambda: due)
    assert world.run(job).ending is Ending.SUCCEEDED
    assert counted(world) == 1


def test_the_key_of_the_hash_is_fetched_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    secrets = clients.secrets()

    def counting() -> object:
        fetched.append("secret")
        return secrets

    monkeypatch.setattr(clients, "secrets", counting)
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    for _ in range(3):
        world.visit("spring")
    world.run_all()
    # The present version and the previous one.
    assert fetched == ["secret"] * 2


def test_a_click_that_another_caller_submits_dies(world: World) -> None:
    assert world.run(world.submit(CLICK, user="AROAOTHER", code="spring")).ending is Ending.DEAD
    (job,) = world.jobs()
    assert (job.state, job.death) == (State.DEAD, DeathReason.PERMANENT)
    assert world.items(world.clicks_table) == []


@pytest.mark.slow
def test_invented_names_cannot_fill_the_counters(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_tally, "NAMES_KEPT", 1)
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    for number in range(60):
        world.visit("spring", user_agent=f"made up {number}/1.2 CFNetwork/672")
    world.run_all()
    stats = world.stats("spring").json()
    assert stats["clicks"] == sum(stats["browsers"].values()) == 60
    assert len(stats["browsers"]) <= 16 + 1
    assert stats["browsers"]["Other"] >= 60 - 16
    # The records keep the names.
    assert len({record["browser"]["S"] for record in world.clicks()}) == 60


def test_every_job_of_a_batch_counts_its_click(world: World) -> None:
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    for _ in range(10):
        world.visit("spring", user_agent=FIREFOX)
    attempts = [world.attempt(job) for job in world.jobs()]
    assert all(attempt.claim(remaining=REMAINING) for attempt in attempts)
    # All attempts read their shard before the first one writes.
    for attempt, outcome in [(attempt, attempt.run()) for attempt in attempts]:
        attempt.finish(outcome)
    assert counted(world) == 10
    assert world.stats("spring").json()["browsers"] == {"Firefox": 10}
