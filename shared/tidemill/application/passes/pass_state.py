"""The state of a pass: one complete read of the table in segments, continued by many runs. Pure, and what stores it."""

from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from tidemill.domain.records import replace

#: A pass begins this long after the one before began, or at once if it was asked for.
PASS_INTERVAL: Final = timedelta(days=1)
#: The number of segments of a new pass. Segments that are read at once spread the load over the table's partitions.
SEGMENTS: Final = 64


class TablePass(Struct, frozen=True, kw_only=True):
    """The present pass, open or ended. The table keeps only one."""

    number: int
    #: Kept with the pass: a new version of the code may divide the table differently.
    segments: int
    began_at: datetime
    #: When the last complete pass began. Before any is complete: when the first one began.
    covered_since: datetime
    #: None while the pass is open.
    ended_at: datetime | None = None
    #: Whether another pass was asked for since this one began. It begins when this one ends.
    asked: bool = False
    #: The run that works on the pass, until it lets go or until that time. None: any run may take the pass.
    held_by: str | None = None
    held_until: datetime | None = None
    #: A fresh token for each write.
    version: str | None = None

    @property
    def open(self) -> bool:
        return self.ended_at is None

    def held(self, now: datetime) -> bool:
        return self.held_until is not None and self.held_until > now

    def workable(self, now: datetime) -> "TablePass | None":
        """This pass if it is open, or the next one if that is due, or None."""
        if self.open:
            return self
        if self.asked or now - self.began_at >= PASS_INTERVAL:
            return replace(
                self, number=self.number + 1, segments=SEGMENTS, began_at=now, ended_at=None, asked=False, held_by=None
            )
        return None

    def ended(self, now: datetime) -> "TablePass":
        """The pass as it is when every segment has been read to its end."""
        return replace(self, ended_at=now, covered_since=self.began_at)


def first_pass(now: datetime) -> TablePass:
    return TablePass(number=1, segments=SEGMENTS, began_at=now, covered_since=now)


class Segment(Struct, frozen=True, kw_only=True):
    """How far one pass has read one segment of the table."""

    pass_number: int
    number: int
    #: The last key of the pages that were worked. None: no page was.
    cursor: str | None = None
    done: bool = False
    #: The number of items read so far.
    items: int = 0
    #: How often the work on the next page failed.
    tries: int = 0
    #: The version of the stored item. None for an item that was never written.
    version: str | None = None

    def past(self, cursor: str | None, items: int) -> "Segment":
        """The segment after one more page. `cursor` is None at the end of the segment."""
        return replace(self, cursor=cursor, done=cursor is None, items=self.items + items, tries=0)


class PassStore(Protocol):
    """Stores the state. A write replaces the version that was read, and nothing else."""

    def read(self) -> TablePass | None:
        """The present pass, read consistently. None if no pass ever began."""

    def write(self, table_pass: TablePass) -> bool:
        """Write over the version in `table_pass`. False if another write has replaced that version."""

    def segment(self, table_pass: TablePass, number: int) -> Segment:
        """Read a segment consistently. It is at its beginning if the pass has not saved it yet."""

    def save(self, segment: Segment) -> Segment | None:
        """Write over the version in `segment`; return it as written, or None as in `write`."""
