"""Shorten: one conditional write makes a link, and the link is the record of its idempotency key."""

from dataclasses import dataclass
from datetime import datetime

from shortener import link_codes
from shortener.link_table import Link, Links
from tidemill import KeyReusedError, TidemillError


class CodeTakenError(TidemillError):
    """The code that was asked for belongs to another link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """The link of a request. `replayed` when it was there already."""

    link: Link
    replayed: bool


def shorten(
    links: Links, *, owner: str, url: str, code: str | None, key: str | None, trace: str, now: datetime
) -> Shortened:
    """Make a link under `code`, or under one that is free.

    A key is kept by the link that it made, so it guards the code that it stands for: the same key with another code of
    the caller's own choice makes another link. Raises `CodeTakenError`, or `KeyReusedError` when the link that the key
    made leads elsewhere.
    """
    for tried in [code] if code else link_codes.made_up(owner, key):
        asked = Link(code=tried, url=url, owner=owner, key=key, trace=trace, created_at=now)
        found = links.insert_if_absent(asked)
        if found.trace == trace:
            return Shortened(link=found, replayed=False)
        if key is not None and (found.owner, found.key) == (owner, key):
            if found.url != url:
                raise KeyReusedError("this idempotency key was used before with another body")
            return Shortened(link=found, replayed=True)
    raise CodeTakenError(f"the code {code} is taken; ask for another, or leave it out to be given one")
