"""`GET /{code}` redirects a visitor and submits the click."""

import json
import os
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from shortener.client_address import fingerprint
from shortener.names import VISITORS, Env
from tests.integration.shortener.conftest import World, forget, refusing
from tests.support.builders import NOW
from tests.support.faulty_client import Fault
from tidemill import composition
from tidemill.aws import clients
from tidemill.domain.states import State
from tidemill.metrics import Metric
from tidemill.names import Lane

URL = "https://example.com/a"
#: The network of `SOURCE`.
NETWORK = "203.0.113.0"


@pytest.fixture(autouse=True)
def link(world: World) -> None:
    world.post_link({"url": URL, "code": "spring"})
    world.post_link({"url": "https://example.com/b", "code": "summer"})


def payload(world: World) -> Any:
    (job,) = world.jobs()
    return json.loads(composition.parts().payloads.load(job))


def test_a_visitor_is_redirected_and_the_click_is_a_job(world: World) -> None:
    answer = world.visit("spring")
    assert (answer.status, answer.text) == (302, "")
    assert answer.headers["Location"] == URL
    assert answer.headers["Cache-Control"] == "no-store"
    (job,) = world.jobs()
    assert (job.tenant, job.type, job.state) == (VISITORS, "click.enrich", State.QUEUED)
    # Anyone can make clicks, so they must not delay the jobs of callers.
    assert job.lane is Lane.BULK


def test_a_redirect_is_one_read_and_one_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    make_call = world.dynamodb._make_api_call  # type: ignore[attr-defined]  # all calls pass through this method

    def counted(operation: str, request: Any) -> Any:
        calls.append(operation)
        return make_call(operation, request)

    monkeypatch.setattr(world.dynamodb, "_make_api_call", counted)
    world.visit("spring")
    assert calls == ["GetItem", "PutItem"]


def test_each_visit_is_a_click_of_its_own(world: World) -> None:
    world.visit("spring")
    world.visit("spring")
    assert len(world.jobs()) == 2


@pytest.mark.parametrize("code", ["autumn", "links", "a.b", "x" * 65, "Spring"])
def test_an_unknown_code_is_not_found_and_not_counted(world: World, code: str) -> None:
    answer = world.visit(code)
    assert answer.status == 404
    assert answer.json()["type"] == "urn:tidemill:problem:no-such-link"
    assert world.jobs() == []


def test_a_click_holds_the_network_a_hash_the_host_and_the_major_versions(world: World) -> None:
    world.visit(
        "spring",
        user_agent="Browser/1.2.3 (OS 10_15_7) " + "x" * 512,
        referer="https://me:secret@news.example/story",
        x_forwarded_for="8.8.8.8, 83.149.9.216",
    )
    click = payload(world)
    assert re.fullmatch("[0-9a-f]{32}", click.pop("visitor"))
    assert click == {
        "code": "spring",
        "address": "83.149.9.0",
        "user_agent": ("Browser/1.0.0 (OS 10_0_0) " + "x" * 512)[:255],
        "referrer": "news.example",
    }


def test_a_click_without_headers_has_the_network_of_the_connection(world: World) -> None:
    world.visit("spring")
    click = payload(world)
    assert (click["address"], click["user_agent"], click["referrer"]) == (NETWORK, "", "")


def test_the_hash_tells_visitors_apart_and_differs_by_link_and_day(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def visitor(address: str, code: str, at: datetime) -> str:
        monkeypatch.setattr("shortener.clock.now", lambda: at)
        known = {job.id for job in world.jobs()}
        world.visit(code, x_forwarded_for=address)
        (job,) = [job for job in world.jobs() if job.id not in known]
        return str(json.loads(composition.parts().payloads.load(job))["visitor"])

    one = visitor("83.149.9.216", "spring", NOW)
    assert visitor("83.149.9.216", "spring", NOW) == one
    others = [
        visitor("83.149.9.217", "spring", NOW),
        visitor("83.149.9.216", "summer", NOW),
        visitor("83.149.9.216", "spring", NOW + timedelta(days=1)),
    ]
    assert len({one, *others}) == 4


def test_a_new_key_of_the_hash_is_used_from_the_next_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm and cold functions agree on the day of a rotation, so no visitor counts twice."""
    secret = os.environ[Env.ADDRESS_KEY_SECRET]
    today = datetime.now(UTC).date()

    def hashed(day: date) -> str:
        return fingerprint("83.149.9.216", code="spring", day=day)

    days = [today, today + timedelta(days=1)]
    before = [hashed(day) for day in days]
    clients.secrets().put_secret_value(SecretId=secret, SecretString="a new key")
    assert [hashed(day) for day in days] == before

    forget()
    after = [hashed(day) for day in days]
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_while_the_key_of_the_hash_cannot_be_read_a_click_has_no_visitor(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as for_now:
        for_now.setattr(clients.secrets(), "get_secret_value", refusing("ThrottlingException"))
        assert world.visit("spring").status == 302
    assert payload(world)["visitor"] is None
    assert "visitor not identified" in [record.getMessage() for record in caplog.records]


def test_without_trusted_proxies_a_visitor_cannot_forge_an_address(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(Env.TRUSTED_PROXY_HOPS, "0")
    world.visit("spring", x_forwarded_for="83.149.9.216")
    assert payload(world)["address"] == NETWORK


def test_an_invalid_address_is_left_out(world: World) -> None:
    world.visit("spring", x_forwarded_for="unknown")
    assert payload(world)["address"] is payload(world)["visitor"] is None


@pytest.mark.parametrize("agent", ["x" * 100_000, "\ud800" * 600, "\0\x1b[2J\ufffe", "é☃" * 400, "   "])
def test_any_user_agent_is_accepted(world: World, agent: str) -> None:
    assert world.visit("spring", user_agent=agent, referer=agent).status == 302
    assert len(payload(world)["user_agent"]) <= 256
    assert len(payload(world)["referrer"]) <= 253
    world.run_all()
    assert [job.state for job in world.jobs()] == [State.SUCCEEDED]


def test_a_click_that_is_sent_again_with_its_key_is_the_same_click(world: World) -> None:
    first = world.visit("spring", idempotency_key="k")
    again = world.visit("spring", idempotency_key="k")
    assert (first.status, again.status) == (302, 302)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(world.jobs()) == 1


def test_the_same_key_on_another_link_is_another_click(world: World) -> None:
    world.visit("spring", idempotency_key="k")
    assert "Idempotent-Replayed" not in world.visit("summer", idempotency_key="k").headers
    assert len(world.jobs()) == 2


def test_the_same_key_from_another_browser_redirects_and_counts_nothing(world: World) -> None:
    world.visit("spring", idempotency_key="k", user_agent="one")
    again = world.visit("spring", idempotency_key="k", user_agent="two")
    assert (again.status, again.headers["Location"]) == (302, URL)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert payload(world)["user_agent"] == "one"


@pytest.mark.parametrize("key", ["", " ", "k k", "é", "x" * 256])
def test_an_invalid_key_is_refused(world: World, key: str) -> None:
    assert world.visit("spring", idempotency_key=key).status == 400
    assert world.jobs() == []


def test_a_click_that_cannot_be_written_redirects_and_is_reported(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    world.client.faults = [Fault.NOT_SENT]
    answer = world.visit("spring")
    assert (answer.status, answer.headers["Location"]) == (302, URL)
    assert world.jobs() == []
    (metrics,) = [line for line in capsys.readouterr().out.splitlines() if Metric.NOT_ACCEPTED in line]
    assert json.loads(metrics)[Metric.NOT_ACCEPTED] == 1
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert lines == [("ERROR", "not accepted"), ("INFO", "metrics")]


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_a_click_that_can_never_be_written_redirects_too(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    monkeypatch.setattr(world.dynamodb, "put_item", refusing(code))
    assert world.visit("spring").status == 302
    assert "not accepted" in [record.getMessage() for record in caplog.records]


def test_a_click_whose_job_is_settling_is_a_replay(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write conflicts with the transaction that settles the job of the same click."""
    monkeypatch.setattr(world.dynamodb, "put_item", refusing("TransactionConflictException"))
    answer = world.visit("spring", idempotency_key="k")
    assert (answer.status, answer.headers["Idempotent-Replayed"]) == (302, "true")


def test_an_unreadable_link_is_answered_with_503_and_makes_no_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.dynamodb, "get_item", refusing("ThrottlingException"))
    answer = world.visit("spring")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert world.jobs() == []
