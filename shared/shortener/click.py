"""A click as a job: what the redirect submits and `click.enrich` takes."""

from typing import Final

from pydantic import BaseModel, Field

#: The job type.
CLICK: Final = "click.enrich"

#: Clicks are anonymous, so their jobs have a tenant of their own. No caller's is like it: theirs begin with the number
#: of an account.
VISITORS: Final = "anonymous:shortener"

#: What a header may bring into a job; more of it tells nobody anything.
LONGEST_HEADER_CHARACTERS: Final = 512


class Click(BaseModel):
    """One visit of a link. When it was is when its job was submitted.

    No time of its own: a click that is sent again under its key must be equal to the first.
    """

    code: str = Field(min_length=1, max_length=64)
    #: None when it cannot be told.
    address: str | None = Field(default=None, max_length=64)
    user_agent: str = Field(default="", max_length=LONGEST_HEADER_CHARACTERS)
    referrer: str = Field(default="", max_length=LONGEST_HEADER_CHARACTERS)
