"""A click as a job: what the redirect submits and `click.enrich` takes. It holds nothing that names a visitor."""

import re
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field

from shortener.client_address import network

#: The job type.
CLICK: Final = "click.enrich"

#: How long the job of a click is kept after its end: long enough to redrive the dead ones after a weekend.
KEPT: Final = timedelta(days=3)
#: A longer header is cut before it is read: the rest carries no information.
LONGEST_HEADER_CHARACTERS: Final = 512
#: The part of a user agent that a job holds. The names of browser, system and device stand in it.
LONGEST_AGENT_CHARACTERS: Final = 256
#: The longest name that DNS allows.
LONGEST_HOST_CHARACTERS: Final = 253

_HOST: Final = re.compile(r"[a-z0-9.-]*", re.IGNORECASE)
#: A version and its minor parts, such as `125.0.6422.60` and `10_15_7`.
_VERSION: Final = re.compile(r"(\d+)((?:[._]\d+)+)")


def _host(referrer: str) -> str:
    """The host of the referrer. The rest of the URL may hold private data, so it is not kept."""
    if _HOST.fullmatch(referrer):  # a click that was read before
        return referrer[:LONGEST_HOST_CHARACTERS]
    try:
        return (urlsplit(referrer).hostname or "")[:LONGEST_HOST_CHARACTERS]
    except ValueError:
        return ""


def _coarse(user_agent: str) -> str:
    """The user agent with major versions only, as browsers reduce it themselves. Minor versions tell visitors apart.

    https://developer.mozilla.org/en-US/docs/Web/HTTP/Guides/User-agent_reduction
    """
    return _VERSION.sub(lambda found: found[1] + re.sub(r"\d+", "0", found[2]), user_agent[:LONGEST_AGENT_CHARACTERS])


class Click(BaseModel):
    """One visit of a link. The time of the click is the time at which its job was submitted.

    It keeps only the coarse part of each value that it is made from, so neither a job nor its backups can hold more.
    """

    code: str = Field(min_length=1, max_length=64)
    #: The first address of the visitor's network; None if it is unknown.
    address: Annotated[str | None, AfterValidator(network)] = Field(default=None, max_length=64)
    #: A keyed hash of the address; None if it is unknown.
    visitor: str | None = Field(default=None, max_length=64)
    user_agent: Annotated[str, AfterValidator(_coarse)] = Field(default="", max_length=LONGEST_HEADER_CHARACTERS)
    #: The host of the page with the link.
    referrer: Annotated[str, AfterValidator(_host)] = Field(default="", max_length=LONGEST_HEADER_CHARACTERS)
