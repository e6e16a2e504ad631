"""Adding up clicks, and the bounds of shards and totals."""

from collections import Counter
from datetime import date, timedelta

from shortener.click_table import SHARDS
from shortener.click_tally import (
    NAMES_KEPT,
    TOTAL_DAYS_KEPT,
    TOTAL_NAMES_KEPT,
    Tally,
    Trait,
    condensed,
    counters,
    summed,
)
from shortener.user_agent import LONGEST_NAME_CHARACTERS, OTHER
from shortener.visitor import Visitor

VISITOR = Visitor(country="SE", browser="Firefox", system="Linux", device="Other", bot=False)
DAY = date(2045, 3, 4)
FULL = Tally(names={trait: Counter({f"name {index}": 1 for index in range(NAMES_KEPT)}) for trait in Trait})


def test_a_click_is_counted_once_in_each_trait() -> None:
    assert counters(VISITOR, Tally(), day=DAY) == [
        "clicks",
        "day:2045-03-04",
        "country:SE",
        "browser:Firefox",
        "system:Linux",
        "device:Other",
    ]


def test_a_click_of_a_bot_is_also_counted_as_a_bot() -> None:
    bot = Visitor(country="US", browser="Googlebot", system="Other", device="Spider", bot=True)
    assert counters(bot, Tally(), day=DAY) == [
        "clicks",
        "bots",
        "day:2045-03-04",
        "country:US",
        "browser:Googlebot",
        "system:Other",
        "device:Spider",
    ]


def test_names_beyond_the_bound_count_as_other_except_for_countries() -> None:
    assert counters(VISITOR, FULL, day=DAY) == [
        "clicks",
        "day:2045-03-04",
        "country:SE",
        f"browser:{OTHER}",
        f"system:{OTHER}",
        f"device:{OTHER}",
    ]


def test_a_known_name_is_counted_in_a_full_shard() -> None:
    visitor = Visitor(country="SE", browser="name 0", system="name 1", device="name 2", bot=False)
    assert "browser:name 0" in counters(visitor, FULL, day=DAY)


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


def test_without_shards_the_tally_is_empty() -> None:
    assert summed([]) == Tally()


def test_a_total_has_the_counters_of_its_shards_and_nothing_else() -> None:
    shard = {"clicks": 3, "bots": 1, "day:2045-03-04": 2, "day:2045-03-05": 1, "country:SE": 3, "browser:Firefox": 3}
    assert condensed(summed([shard])) == shard


def test_a_full_total_counts_the_rarest_names_as_other_and_loses_no_click() -> None:
    names = {f"browser:name {index}": index + 1 for index in range(TOTAL_NAMES_KEPT + 10)}
    total = condensed(summed([{"clicks": sum(names.values()), f"browser:{OTHER}": 7, **names}]))
    browsers = summed([total]).names[Trait.BROWSER]
    assert browsers.total() == sum(names.values()) + 7
    assert browsers[f"name {TOTAL_NAMES_KEPT}"] == TOTAL_NAMES_KEPT + 1
    assert "name 0" not in browsers
    assert len(browsers) <= TOTAL_NAMES_KEPT + 1


def test_a_total_keeps_the_latest_days() -> None:
    days = [str(DAY + timedelta(days=index)) for index in range(TOTAL_DAYS_KEPT + 1)]
    kept = summed([condensed(Tally(clicks=len(days), days=Counter(days)))])
    assert sorted(kept.days) == days[1:]
    assert kept.clicks == len(days)


BYTES_OF_A_NUMBER = 21
COUNTRIES = 300 * (len("country:DE") + BYTES_OF_A_NUMBER)
A_NAME = len("browser:") + LONGEST_NAME_CHARACTERS + BYTES_OF_A_NUMBER
OPEN_TRAITS = 3


def test_all_shards_of_a_link_and_a_day_fit_into_one_page_of_a_query() -> None:
    # 1 MB: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
    assert SHARDS * (OPEN_TRAITS * (NAMES_KEPT + 1) * A_NAME + COUNTRIES + 500) < 1_000_000


def test_the_largest_total_fits_into_an_item() -> None:
    # 400 KB: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
    days = TOTAL_DAYS_KEPT * (len("day:2045-03-04") + BYTES_OF_A_NUMBER)
    assert OPEN_TRAITS * (TOTAL_NAMES_KEPT + 1) * A_NAME + COUNTRIES + days + 500 < 400_000
