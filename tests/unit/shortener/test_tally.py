"""What clicks add up to."""

from collections import Counter

from shared.adapters.shortener.agents import LONGEST_NAME_CHARACTERS, OTHER
from shared.adapters.shortener.clicks import SHARDS
from shared.adapters.shortener.tally import NAMES_KEPT, Tally, Trait, counters, summed
from shared.adapters.shortener.visitor import Visitor

VISITOR = Visitor(country="SE", browser="Firefox", system="Linux", device="Other", bot=False)
CROWD = Tally(names={trait: Counter({f"name {index}": 1 for index in range(NAMES_KEPT)}) for trait in Trait})


def test_a_click_is_counted_once_in_each_trait() -> None:
    assert counters(VISITOR, Tally()) == [
        "clicks",
        "country:SE",
        "browser:Firefox",
        "system:Linux",
        "device:Other",
    ]


def test_a_click_of_a_bot_is_counted_as_one_and_in_each_trait() -> None:
    bot = Visitor(country="US", browser="Googlebot", system="Other", device="Spider", bot=True)
    assert counters(bot, Tally()) == [
        "clicks",
        "bots",
        "country:US",
        "browser:Googlebot",
        "system:Other",
        "device:Spider",
    ]


def test_names_beyond_the_bound_count_as_other_and_countries_are_few_enough() -> None:
    assert counters(VISITOR, CROWD) == [
        "clicks",
        "country:SE",
        f"browser:{OTHER}",
        f"system:{OTHER}",
        f"device:{OTHER}",
    ]


def test_a_name_that_is_held_is_counted_however_many_there_are() -> None:
    visitor = Visitor(country="SE", browser="name 0", system="name 1", device="name 2", bot=False)
    assert "browser:name 0" in counters(visitor, CROWD)


def test_shards_are_added_up() -> None:
    tally = summed(
        [
            {"clicks": 2, "bots": 1, "country:SE": 2, "browser:Opera: Mini": 2},
            {"clicks": 1, "country:SE": 1, "browser:Firefox": 1},
        ]
    )
    assert (tally.clicks, tally.bots) == (3, 1)
    assert tally.names[Trait.COUNTRY] == {"SE": 3}
    assert tally.names[Trait.BROWSER] == {"Opera: Mini": 2, "Firefox": 1}
    assert tally.names[Trait.DEVICE] == {}


def test_no_shards_are_no_clicks() -> None:
    assert summed([]) == Tally()


def test_all_shards_of_a_link_fit_into_one_page_of_a_query() -> None:
    # 1 MB: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
    bytes_of_a_number = 21
    open_traits, countries = 3, 300
    of_names = open_traits * (NAMES_KEPT + 1) * (len("browser:") + LONGEST_NAME_CHARACTERS + bytes_of_a_number)
    of_countries = countries * (len("country:DE") + bytes_of_a_number)
    assert SHARDS * (of_names + of_countries + 500) < 1_000_000
