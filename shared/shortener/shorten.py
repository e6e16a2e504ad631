"""Creates a link with one conditional write. The link is also the record of its idempotency key."""

from dataclasses import dataclass
from datetime import datetime

from shortener import link_codes
from shortener.link_table import Link, Links
from tidemill import KeyReusedError, TidemillError


class CodeTakenError(TidemillError):
    """The requested code belongs to another link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """The link of a request. `replayed` if an earlier request with the same key created it."""

    link: Link
    replayed: bool


def shorten(
    links: Links, *, owner: str, url: str, code: str | None, key: str | None, trace: str, now: datetime
) -> Shortened:
    """Create a link with `code`, or with a generated code without one.

    The idempotency key is stored in the link, so it deduplicates requests for the same code: the same key with another
    chosen code creates another link. Raises `CodeTakenError`, or `KeyReusedError` if the link of the key has another
    URL.
    """
    for tried in [code] if code else link_codes.candidates(owner, key):
        asked = Link(code=tried, url=url, owner=owner, key=key, trace=trace, created_at=now)
        found = links.insert_if_absent(asked)
        if found.trace == trace:
            return Shortened(link=found, replayed=False)
        if key is not None and (found.owner, found.key) == (owner, key):
            if found.url != url:
                raise KeyReusedError("this idempotency key was used before with another body; use a new key")
            return Shortened(link=found, replayed=True)
    raise CodeTakenError(f"the code {code} is taken; choose another, or omit it to receive a generated one")
