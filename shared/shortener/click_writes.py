"""The writes that record and count clicks. Those of one call are counted in one shard of each link."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from shortener.click import Click
from shortener.click_table import RECORD, RECORDS_KEPT, Clicks, mark_key, shard_key, shard_of, table_key
from shortener.click_tally import Trait, counters, summed
from shortener.names import TTL_ATTRIBUTE
from shortener.visitor import Visitor
from tidemill import Add, TransactWrite
from tidemill.aws.attribute_values import milliseconds, seconds, text
from tidemill.aws.clients import Item


class ClickWrites:
    """For the clicks of one call, in transactions that begin `now`.

    The clicks of a link add up in one item, so that few writes count all of them. Another call chooses another one of
    its shards, by the id of the first job, since two transactions on one item conflict.
    """

    def __init__(self, clicks: Clicks, *, first_job_id: str, now: datetime) -> None:
        self._clicks = clicks
        self._shard = shard_of(first_job_id)
        self._now = now
        #: By link, what its shard holds and the clicks of this call.
        self._counted: dict[str, Counter[str]] = {}
        #: The links whose shard was empty.
        self._new: set[str] = set()

    def of(self, click: Click, visitor: Visitor, *, job_id: str, at: datetime) -> Sequence[TransactWrite | Add]:
        """The writes for a click of the time `at`. Reads the shard of its link once, to learn its names.

        The first clicks of a shard also write a mark for the rollup. Each of them does, since any may be the only one
        that succeeds.
        """
        day, table = self._now.date(), self._clicks.table
        key = shard_key(click.code, day, self._shard)
        if click.code not in self._counted:
            self._counted[click.code] = Counter(self._clicks.shard(key))
            if not self._counted[click.code]:
                self._new.add(click.code)
        counted = self._counted[click.code]
        raised = counters(visitor, summed([counted]), day=at.date())
        counted.update(raised)
        writes: list[TransactWrite | Add] = [
            {"Put": {"TableName": table, "Item": _record(click, visitor, job_id=job_id, at=at)}},
            Add(table, key, dict.fromkeys(raised, 1)),
        ]
        if click.code in self._new:
            mark = mark_key(click.code, day, self._shard) | {TTL_ATTRIBUTE: seconds(self._now + RECORDS_KEPT)}
            writes.append({"Put": {"TableName": table, "Item": mark}})
        return writes


def _record(click: Click, visitor: Visitor, *, job_id: str, at: datetime) -> Item:
    """The record of a click, without the network and the user agent."""
    return {
        # Sorts by time. The id of the job keeps it to one record, however often the job runs.
        **table_key(click.code, f"{RECORD}{at.isoformat(timespec='milliseconds')}#{job_id}"),
        "at": milliseconds(at),
        "bot": {"BOOL": visitor.bot},
        TTL_ATTRIBUTE: seconds(at + RECORDS_KEPT),
        **{trait.value: text(getattr(visitor, trait)) for trait in Trait},
        **({"visitor": text(click.visitor)} if click.visitor else {}),
        **({"referrer": text(click.referrer)} if click.referrer else {}),
    }
