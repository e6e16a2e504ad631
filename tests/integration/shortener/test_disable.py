"""`DELETE /links/{code}` disables a link of the caller."""

from datetime import timedelta

import pytest

from tests.integration.shortener.conftest import World, set_now
from tests.support.builders import NOW
from tests.support.faulty_client import Fault

URL = "https://example.com/a"


@pytest.fixture(autouse=True)
def link(world: World) -> None:
    world.post_link({"url": URL, "code": "spring"}, key="k")


def test_a_disabled_link_is_gone_and_its_visits_are_not_counted(world: World) -> None:
    disabled = world.disable("spring")
    assert (disabled.status, disabled.json()["code"]) == (200, "spring")
    answer = world.visit("spring")
    assert answer.status == 410
    assert answer.json()["type"] == "urn:tidemill:problem:link-disabled"
    assert "Location" not in answer.headers
    assert world.jobs() == []


def test_a_repeat_answers_with_the_time_of_the_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    set_now(monkeypatch, lambda: NOW)
    first = world.disable("spring")
    set_now(monkeypatch, lambda: NOW + timedelta(hours=1))
    assert world.disable("spring").json() == first.json()


def test_a_write_that_the_sdk_sends_twice_disables_the_link(world: World) -> None:
    world.client.faults = [Fault.SENT_TWICE]
    assert world.disable("spring").status == 200
    assert world.visit("spring").status == 410


def test_another_caller_cannot_disable_a_link_nor_learn_of_it(world: World) -> None:
    theirs, missing = world.disable("spring", user="AROAOTHER"), world.disable("nowhere", user="AROAOTHER")
    assert theirs.status == missing.status == 404
    assert theirs.json() == missing.json()
    assert world.visit("spring").status == 302


def test_another_caller_cannot_read_when_a_link_was_disabled(world: World) -> None:
    world.disable("spring")
    assert world.disable("spring", user="AROAOTHER").status == 404


def test_a_caller_without_an_identity_is_refused(world: World) -> None:
    assert world.disable("spring", user=None).status == 403
    assert world.visit("spring").status == 302


def test_the_code_of_a_disabled_link_stays_taken(world: World) -> None:
    world.disable("spring")
    assert world.post_link({"url": "https://example.com/other", "code": "spring"}).status == 409


def test_a_replay_shows_that_the_link_is_disabled(world: World) -> None:
    disabled = world.disable("spring")
    again = world.post_link({"url": URL, "code": "spring"}, key="k")
    assert (again.status, again.json()) == (200, disabled.json())


def test_the_statistics_of_a_disabled_link_stay(world: World) -> None:
    world.visit("spring")
    world.run_all()
    world.disable("spring")
    assert world.stats("spring").json()["clicks"] == 1
