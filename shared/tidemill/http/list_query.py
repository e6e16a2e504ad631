"""The query parameters of `GET /jobs` and `GET /flows/{id}`: checked, with the cursor decoded to a position."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final, Protocol

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tidemill.application.submission.validation import LONGEST_ID
from tidemill.declarations.payload_model import faults
from tidemill.domain.errors import Fault
from tidemill.domain.states import State
from tidemill.domain.time_constants import EPOCH
from tidemill.dynamodb.batches.listed_members import KINDS
from tidemill.dynamodb.listing import Wanted
from tidemill.dynamodb.listing_entries import Position
from tidemill.http.cursors import CursorError, Cursors
from tidemill.http.problems import ProblemError
from tidemill.http.submission_form import Moment, Tag

LARGEST_PAGE: Final = 100
DEFAULT_PAGE: Final = 20
LONGEST_TYPE: Final = 100
LONGEST_CURSOR: Final = 300
EARLIEST: Final = EPOCH
#: The clock of the function that dated the newest jobs may be ahead of this one.
_SKEW: Final = timedelta(minutes=1)

#: The cursor of a flow is the number of a node, which says nothing that its owner does not know.
NODE_CURSOR: Final = r"[0-9]{1,5}"

_NUMBER: Final = re.compile(r"[1-9]\d{0,2}", re.ASCII)


def _to_the_millisecond(moment: datetime) -> datetime:
    """Rounded up. Times of jobs are whole milliseconds."""
    if moment < EARLIEST:
        raise ValueError(f"must not be before {EARLIEST.year}")
    try:
        return moment + timedelta(microseconds=-moment.microsecond % 1000)
    except OverflowError:
        raise ValueError("time out of range; use an earlier time") from None


def _number(value: str) -> int:
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"must be a whole number from 1 to {LARGEST_PAGE}")
    return int(value)


Bound = Annotated[Moment, AfterValidator(_to_the_millisecond)]


class ListingQuery(BaseModel):
    """The parameters of the request. Each occurs at most once."""

    model_config = ConfigDict(extra="forbid")

    state: State | None = None
    type: str | None = Field(None, min_length=1, max_length=LONGEST_TYPE)
    tag: Tag | None = None
    #: One for each of `KINDS`.
    batch: str | None = Field(None, min_length=1, max_length=LONGEST_ID)
    event: str | None = Field(None, min_length=1, max_length=LONGEST_ID)
    since: Bound | None = None
    until: Bound | None = None
    limit: Annotated[int, BeforeValidator(_number), Field(le=LARGEST_PAGE)] = DEFAULT_PAGE
    cursor: str | None = Field(None, min_length=1, max_length=LONGEST_CURSOR)

    def bound_to(self, tenant: str) -> Sequence[str | None]:
        """The values that a cursor is valid for. `limit` is absent, so the page size may change between pages."""
        moments = [None if moment is None else moment.isoformat() for moment in (self.since, self.until)]
        return [tenant, self.state, self.type, *moments, self.tag, self.batch, self.event]

    @property
    def wholes(self) -> Mapping[str, str]:
        """The id of the job whose members are wanted, by its kind."""
        return {kind: job_id for kind in KINDS if (job_id := getattr(self, kind)) is not None}


class Asked(Struct, frozen=True, kw_only=True):
    """A parsed request for a page. The cursor of the next page is valid for `bound_to` only."""

    wanted: Wanted
    #: Kind and id of the job whose members are wanted. None is all jobs.
    whole: tuple[str, str] | None
    below: Position
    limit: int
    bound_to: Sequence[str | None]


class KnownCursors(Protocol):
    """The cursors of the keys that this process knows. With `newer`, it looks for newer keys before."""

    def __call__(self, *, newer: bool = False) -> Cursors: ...


def read_query(parameters: Mapping[str, str], *, tenant: str, now: datetime, cursors: KnownCursors) -> Asked:
    """Raises `ProblemError`."""
    try:
        query = ListingQuery.model_validate(parameters)
    except ValidationError as error:
        raise _invalid(faults(error)) from error
    whole = next(iter(query.wholes.items()), None)
    if len(query.wholes) > 1:
        raise _invalid([Fault(f"/{kind}", "give one of these") for kind in query.wholes])
    until = min(query.until or now + _SKEW, now + _SKEW)
    since = query.since or EARLIEST
    if since >= until:
        raise _invalid([Fault("/since", "must be before until, and in the past")])
    bound_to = query.bound_to(tenant)
    below = Position(until)
    if query.cursor is not None:
        try:
            below = _position(query.cursor, bound_to, cursors)
        except CursorError as error:
            fault = Fault(
                "/cursor", "invalid here; send the cursor of the previous page unchanged, with the same filters"
            )
            raise _invalid([fault]) from error
    wanted = Wanted(tenant=tenant, since=since, state=query.state, type=query.type, tag=query.tag)
    return Asked(wanted=wanted, whole=whole, below=below, limit=query.limit, bound_to=bound_to)


def read_first_node(parameters: Mapping[str, str]) -> int:
    """The number of the first node of the page. Raises `ProblemError`."""
    cursor = parameters.get("cursor", "0")
    if not re.fullmatch(NODE_CURSOR, cursor):
        raise _invalid([Fault("/cursor", "invalid here; send the cursor of the previous page unchanged")])
    return int(cursor)


def _position(cursor: str, bound_to: Sequence[str | None], cursors: KnownCursors) -> Position:
    """Raises `CursorError`."""
    try:
        return cursors().read(cursor, bound_to=bound_to)
    except CursorError:
        # The key was replaced, and another process has signed with the new one already.
        return cursors(newer=True).read(cursor, bound_to=bound_to)


def _invalid(found: Sequence[Fault]) -> ProblemError:
    detail = "; ".join(str(fault).removeprefix("/") for fault in found)
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-query", detail, faults=found)
