"""Counts countries and browsers from the log without the code of the app, to check the counts of the app."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Final

import ua_parser
from iptocc import country_code

from demo.access_log import Click

#: The shortener's names for an unknown country or browser, the part of a user agent that it keeps, and the length to
#: which it cuts a name.
UNKNOWN_COUNTRY: Final = "??"
UNKNOWN_BROWSER: Final = "Other"
AGENT_CHARACTERS: Final = 256
NAME_CHARACTERS: Final = 64


@dataclass(slots=True)
class Count:
    """The number of clicks, in total and by country and browser."""

    clicks: int = 0
    countries: Counter[str] = field(default_factory=Counter)
    browsers: Counter[str] = field(default_factory=Counter)

    def add(self, stats: Mapping[str, Any]) -> None:
        """Add the answer of `GET /links/{code}/stats` for one link."""
        self.clicks += stats["clicks"]
        self.countries.update(stats["countries"])
        self.browsers.update(stats["browsers"])


def recount(clicks: Iterable[Click]) -> Count:
    count = Count()
    for click in clicks:
        count.clicks += 1
        count.countries[_country(click.address)] += 1
        count.browsers[_browser(click.agent or "")] += 1
    return count


def _country(address: str) -> str:
    """The country of the network, since the shortener keeps no more of the address."""
    try:
        bits = 48 if ":" in address else 24
        network = ip_network(f"{address}/{bits}", strict=False)
    except ValueError:
        return UNKNOWN_COUNTRY
    return country_code(str(network.network_address)) or UNKNOWN_COUNTRY


def _browser(agent: str) -> str:
    try:
        found = ua_parser.parse_user_agent(_major_versions(agent[:AGENT_CHARACTERS]))
    except (TypeError, ValueError):  # the library raises for some invalid user agents
        found = None
    return found.family.encode("ascii", "replace").decode()[:NAME_CHARACTERS] if found else UNKNOWN_BROWSER


def _major_versions(agent: str) -> str:
    """The shortener keeps 125 of 125.0.6422, and zeros for the rest."""
    return re.sub(r"(?<=\d[._])\d+", "0", agent)
