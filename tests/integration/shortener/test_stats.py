"""`GET /links/{code}/stats` shows the statistics of a link to its owner."""

import pytest

from tests.integration.shortener.conftest import World
from tidemill.system import clock

URL = "https://example.com/a"
FIREFOX = "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:26.0) Gecko/20100101 Firefox/26.0"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


@pytest.fixture(autouse=True)
def link(world: World) -> None:
    world.post_link({"url": URL, "code": "spring"})
    world.post_link({"url": URL, "code": "summer"})


def test_a_new_link_has_no_clicks(world: World) -> None:
    answer = world.stats("spring")
    assert answer.status == 200
    assert answer.json() == {
        "code": "spring",
        "url": URL,
        "clicks": 0,
        "bots": 0,
        "days": {},
        "countries": {},
        "browsers": {},
        "systems": {},
        "devices": {},
    }


def test_clicks_are_added_up_over_the_shards_with_the_most_frequent_first(world: World) -> None:
    visits = [("83.149.9.216", FIREFOX)] * 20 + [("8.8.8.8", GOOGLEBOT)] * 21 + [("10.0.0.1", FIREFOX)]
    for address, agent in visits:
        world.visit("spring", x_forwarded_for=address, user_agent=agent)
    world.visit("summer", x_forwarded_for="8.8.8.8", user_agent=GOOGLEBOT)
    world.run_all()
    answer = world.stats("spring")
    assert answer.json() == {
        "code": "spring",
        "url": URL,
        "clicks": 42,
        "bots": 21,
        "days": {str(clock.now().date()): 42},
        "countries": {"US": 21, "RU": 20, "??": 1},
        "browsers": {"Firefox": 21, "Googlebot": 21},
        "systems": {"Other": 21, "Ubuntu": 21},
        "devices": {"Other": 21, "Spider": 21},
    }
    assert list(answer.json()["countries"]) == ["US", "RU", "??"]
    assert len([item for item in world.items(world.clicks_table) if "clicks" in item]) > 2
    assert world.stats("summer").json()["clicks"] == 1


def test_a_link_of_another_caller_and_a_missing_link_have_the_same_answer(world: World) -> None:
    answers = [world.stats("spring", user="AROAOTHER"), world.stats("autumn"), world.stats("a.b")]
    assert {answer.status for answer in answers} == {404}
    assert len({answer.text for answer in answers}) == 1


def test_a_caller_without_an_identity_is_refused(world: World) -> None:
    assert world.stats("spring", user=None).status == 403
