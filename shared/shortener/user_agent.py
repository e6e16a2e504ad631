"""Reads a user agent: browser, system, device, and whether it is a bot."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from shortener.lazy import Lazy

if TYPE_CHECKING:
    from ua_parser import Parser

#: The name if ua-parser finds none.
OTHER: Final = "Other"
#: Each name becomes a counter, and a visitor can invent a name of any length.
LONGEST_NAME_CHARACTERS: Final = 64

#: The device that ua-parser reports for the bots that it knows.
_SPIDER: Final = "Spider"
#: Words in the names of bots and of HTTP libraries. An empty agent also counts as a bot, since every browser sends one.
#: Cubot is a maker of telephones.
BOT_WORDS: Final = re.compile(
    r"^\s*$|(?<!cu)bots?\b|robot|crawl|spider|slurp|archiver|feed|\brss\b|fetch|headless|phantomjs"
    r"|\bcurl/|\bwget/|\blibwww-perl|\bpython|\bruby|\bperl|\bphp|\bjava/|\bgo-http|http[-_ ]?client|http_request",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """The properties that a user agent claims. They need not be true."""

    browser: str
    system: str
    device: str
    #: A program made the request, and not a person with a browser.
    bot: bool


class _Named(Protocol):
    @property
    def family(self) -> str: ...


@lru_cache(maxsize=1024)
def read(user_agent: str) -> Agent:
    """Cached for 1,024 agents, since most visitors share a few. Parsing takes nearly a millisecond."""
    parser = _parser()
    device = _family(parser.parse_device, user_agent)
    return Agent(
        browser=_family(parser.parse_user_agent, user_agent),
        system=_family(parser.parse_os, user_agent),
        device=device,
        bot=device == _SPIDER or BOT_WORDS.search(user_agent) is not None,
    )


@Lazy
def _parser() -> "Parser":
    """The pure Python resolver compiles each rule on first use, so it is ready in 3 ms instead of 90."""
    import ua_parser  # noqa: PLC0415 - a third of a worker's import time; the first click pays for it

    return ua_parser.Parser(ua_parser.BasicResolver(ua_parser.load_lazy_builtins()))


def _family(parse: Callable[[str], _Named | None], user_agent: str) -> str:
    try:
        found = parse(user_agent)
    except (ValueError, TypeError):  # a rule matched, but its group for the name is empty
        return OTHER
    name = found.family if found else OTHER
    return name.encode("ascii", "replace").decode()[:LONGEST_NAME_CHARACTERS]
