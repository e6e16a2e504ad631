"""The properties of a visitor, from constructed requests and from a real log."""

import gzip
import re
from pathlib import Path

import pytest

from shortener.click import LONGEST_HEADER_CHARACTERS
from shortener.user_agent import LONGEST_NAME_CHARACTERS
from shortener.visitor import Visitor, enrich

LOG = Path(__file__).parents[3] / ".." / "shared" / "data" / "access.log.gz"
_LINE = re.compile(r'(?P<address>\S+) .*"(?P<agent>[^"]*)"')


def test_a_visitor_has_a_country_and_an_agent() -> None:
    agent = (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0 Safari/537"
    )
    assert enrich("83.149.9.216", agent) == Visitor(
        country="RU", browser="Chrome", system="Mac OS X", device="Mac", bot=False
    )


def test_a_visitor_that_sends_nothing_is_an_unknown_bot() -> None:
    assert enrich(None, "") == Visitor(country="??", browser="Other", system="Other", device="Other", bot=True)


def test_every_line_of_a_real_log_is_enriched() -> None:
    if not LOG.is_file():
        pytest.skip(f"{LOG.resolve()} does not exist")
    with gzip.open(LOG, "rt", encoding="latin-1") as lines:
        requests = [match for line in lines if (match := _LINE.match(line.rstrip()))]
    assert len(requests) >= 9_990
    visitors = [enrich(request["address"], request["agent"][:LONGEST_HEADER_CHARACTERS]) for request in requests]
    assert all(re.fullmatch(r"[A-Z]{2}|\?\?", visitor.country) for visitor in visitors)
    assert all(0 < len(visitor.browser) <= LONGEST_NAME_CHARACTERS for visitor in visitors)
    assert sum(visitor.country != "??" for visitor in visitors) > len(visitors) * 0.99
    assert 0.2 < sum(visitor.bot for visitor in visitors) / len(visitors) < 0.3
