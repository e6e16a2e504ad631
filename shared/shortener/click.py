"""A click as a job: what the redirect submits and `click.enrich` takes."""

from typing import Final

from pydantic import BaseModel, Field

#: The job type.
CLICK: Final = "click.enrich"

#: The tenant of all click jobs, since clicks are anonymous. The tenant of a caller begins with an account number, so it
#: cannot be this one.
VISITORS: Final = "anonymous:shortener"

#: A longer header is cut before it enters a job: the rest carries no information.
LONGEST_HEADER_CHARACTERS: Final = 512


class Click(BaseModel):
    """One visit of a link. The time of the click is the time at which its job was submitted.

    The payload holds no time: a click that is sent again with its key must equal the first one.
    """

    code: str = Field(min_length=1, max_length=64)
    #: None if it is unknown.
    address: str | None = Field(default=None, max_length=64)
    user_agent: str = Field(default="", max_length=LONGEST_HEADER_CHARACTERS)
    referrer: str = Field(default="", max_length=LONGEST_HEADER_CHARACTERS)
