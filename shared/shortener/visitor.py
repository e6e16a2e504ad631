"""The properties of a visitor that are kept, from an address and a user agent, without a call to AWS."""

from dataclasses import dataclass

from shortener.country import country_of
from shortener.user_agent import read


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The properties by which a visitor is counted."""

    country: str
    browser: str
    system: str
    device: str
    bot: bool


def enrich(address: str | None, user_agent: str) -> Visitor:
    """Read the properties of a visitor. Accepts any text without raising."""
    agent = read(user_agent)
    return Visitor(
        country=country_of(address),
        browser=agent.browser,
        system=agent.system,
        device=agent.device,
        bot=agent.bot,
    )
