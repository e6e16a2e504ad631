"""The pages of a batch: items of the jobs table that list its members. Each clause has a comment with its race.

A member is put on its page by the transaction that inserts it, and stays there. If its key is submitted again after its
document has expired, the new job is live, so it leaves the lists of those that ended. The lists are sets, so a write
that comes twice counts once.
"""

import contextlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID
from zlib import crc32

from tidemill.aws.attribute_values import milliseconds, number, seconds
from tidemill.aws.clients import Item, translated
from tidemill.domain.batches.batches import MOST_ON_PAGE, PAGES, Page
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.states import FINAL_STATES, State
from tidemill.dynamodb.item_keys import prefixed_key
from tidemill.dynamodb.job_reader import JobReader
from tidemill.dynamodb.update_requests import Request
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

#: A tenant never begins with it.
PAGE_PREFIX: Final = "!batch#"
CLOSED_ATTRIBUTE: Final = "closed"
_MEMBERS: Final = "members"
#: A batch is open for 30 days at most, a job begins 366 days after its submission at the latest, and retries take days.
_LASTS: Final = timedelta(days=800)
#: Longer than an ended batch is kept, during which an operator may redrive it.
_KEPT: Final = timedelta(days=40)


def page_number(job_id: str) -> int:
    return crc32(job_id.encode()) % PAGES


class DynamoBatchPages(JobReader):
    """The pages, and the documents that they lead to, over one table."""

    def pages(self, batch: Job) -> list[Page]:
        keys = [_key(batch, number) for number in range(PAGES)]
        numbers = {key[JOB_KEY]["S"]: number for number, key in enumerate(keys)}
        return [_page(numbers[item[JOB_KEY]["S"]], item) for item in self._get_batch(keys)]

    def close(self, batch: Job, *, now: datetime) -> None:
        for page in range(PAGES):
            self._update(
                {
                    "Key": _key(batch, page),
                    "UpdateExpression": "SET #closed = :closed, #expires_at = :expires_at",
                    "ExpressionAttributeNames": {"#closed": CLOSED_ATTRIBUTE, "#expires_at": TTL_ATTRIBUTE},
                    "ExpressionAttributeValues": {":closed": milliseconds(now), ":expires_at": seconds(now + _LASTS)},
                }
            )

    def record(
        self, batch: Job, page: Page, ended: Mapping[State, frozenset[str]], *, now: datetime, last: bool = False
    ) -> None:
        expression = "SET #expires_at = :expires_at"
        if ended:
            expression += " ADD " + ", ".join(f"#{state} :{state}" for state in ended)
        request = {
            "Key": _key(batch, page.number),
            "UpdateExpression": expression,
            "ExpressionAttributeNames": {"#expires_at": TTL_ATTRIBUTE, **{f"#{state}": str(state) for state in ended}},
            "ExpressionAttributeValues": {
                ":expires_at": seconds(now + (_KEPT if last else _LASTS)),
                **{f":{state}": _set(ids) for state, ids in ended.items()},
            },
        }
        # A member joins at this moment. The next look records the same again.
        with contextlib.suppress(TransactionConflictError):
            self._update(request)

    def _update(self, request: Request) -> None:
        with translated():
            self._client.update_item(TableName=self._table, **request)


def join(job: Job, batch: Job) -> Request:
    """Put a member on its page, in the transaction that inserts it."""
    conditions = [
        # The batch was closed since it was read, so its members may have been counted for the last time.
        f"attribute_not_exists(#{CLOSED_ATTRIBUTE})",
        # Many members at once: the page is full by now.
        f"(attribute_not_exists(#{_MEMBERS}) OR size(#{_MEMBERS}) < :most)",
    ]
    no_more_ended = ", ".join(f"#{state} :member" for state in FINAL_STATES)
    return {
        "Key": _key(batch, page_number(job.id)),
        "UpdateExpression": f"SET #expires_at = :expires_at ADD #{_MEMBERS} :member DELETE {no_more_ended}",
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {
            "#expires_at": TTL_ATTRIBUTE,
            f"#{CLOSED_ATTRIBUTE}": CLOSED_ATTRIBUTE,
            f"#{_MEMBERS}": _MEMBERS,
            **{f"#{state}": str(state) for state in FINAL_STATES},
        },
        "ExpressionAttributeValues": {
            ":expires_at": seconds(job.created_at + _LASTS),
            ":member": _set([job.id]),
            ":most": number(MOST_ON_PAGE),
        },
    }


def refusal_of(item: Item | None) -> str:
    """Why the page refused a member."""
    return f"the batch {'is closed' if CLOSED_ATTRIBUTE in (item or {}) else 'is full'}"


def _key(batch: Job, page: int) -> Item:
    """With the time of the batch, since a new batch may replace an expired one under its key."""
    return prefixed_key(PAGE_PREFIX, batch.tenant, batch.id, milliseconds(batch.created_at)["N"], page)


def _page(page: int, item: Item) -> Page:
    return Page(
        number=page,
        members=_ids(item, _MEMBERS),
        ended={state: _ids(item, state) for state in FINAL_STATES if state in item},
        closed=CLOSED_ATTRIBUTE in item,
    )


def _set(ids: Iterable[str]) -> Item:
    """Each id in 22 characters, since a write costs by the size of the whole page."""
    return {"SS": sorted(urlsafe_b64encode(UUID(each).bytes).decode().rstrip("=") for each in ids)}


def _ids(item: Item, name: str) -> frozenset[str]:
    short: Sequence[Any] = item.get(name, {"SS": []})["SS"]
    return frozenset(str(UUID(bytes=urlsafe_b64decode(f"{each}=="))) for each in short)
