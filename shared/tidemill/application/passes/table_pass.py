"""`TablePasses`: reads the whole table in passes, page by page, at a limited rate. A run goes on where the last ended.

A page is worked first, and then the cursor moves past it, or past what there was time for. So a run that is killed, or
a cursor that is lost, only makes a later run repeat a page. A cursor moves only from the place at which the page began,
so of two runs that read the same page one moves it on, and the other leaves the segment.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from enum import Enum, auto
from typing import Final

from msgspec import Struct

from tidemill.application.passes.pace import Pace
from tidemill.application.passes.pass_state import PassStore, Segment, TablePass, first_pass
from tidemill.application.ports import Clock, Draw, Found, NewToken, ScanPage, TableScan
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.records import replace

#: The number of segments that one run reads at a time.
_AT_ONCE: Final = 8
#: The time of an invocation that is kept back to finish the page in progress and to report.
RESERVE: Final = timedelta(seconds=10)
#: A page whose work fails is tried by this many runs. Then the pass leaves its failed items to the next pass: one item
#: delays its segment by no more than these runs.
MOST_TRIES: Final = 12
#: A run without a time limit holds the pass for this long at a time.
_LONGEST_HOLD: Final = timedelta(minutes=15)
#: How often a write of the pass is tried against concurrent writes.
_WRITE_TRIES: Final = 10

#: Work an item of a page. False if it failed. Raises `TimeoutError` if no time is left for it.
PageWork = Callable[[Found], bool]


class SegmentEnd(Enum):
    """Why a run left a segment."""

    DONE = auto()
    #: The table did not respond, or the work of an item failed. The next run tries the page again.
    FAILED = auto()
    #: No time was left, or another run moved its cursor.
    UNFINISHED = auto()


class PassReport(Struct, frozen=True, kw_only=True):
    """The pass after one run."""

    table_pass: TablePass
    #: The time since the last complete pass began.
    age: timedelta
    #: Segments that the pass has read to their ends.
    done: int
    #: Whether another run holds the pass. This run did not work then.
    busy: bool = False
    #: Whether this run read the pass to its end.
    completed: bool = False
    failed: int = 0
    unfinished: int = 0
    #: Items that this run read, and items that the pass has read so far.
    read: int = 0
    items: int = 0


class TablePasses:
    """The passes over one table. Each method may be repeated, and several runs may work at once."""

    def __init__(
        self,
        *,
        store: PassStore,
        scan: TableScan,
        pace: Pace,
        clock: Clock,
        new_token: NewToken,
        draw: Draw,
    ) -> None:
        self._store = store
        self.scan = scan
        self._pace = pace
        self._clock = clock
        self._new_token = new_token
        self._draw = draw

    def find(self) -> TablePass | None:
        """The present pass. None if none ever began."""
        return self._store.read()

    def ask(self) -> None:
        """Have a pass begin as soon as none is open: it reads every item after this call."""
        self._change(lambda found: found and replace(found, asked=True))

    def run(self, work: PageWork, *, late_by: timedelta, time_left: Callable[[], timedelta]) -> PassReport:
        """Continue the open pass, or begin one that is due, until `time_left` nears zero.

        `work` gets overdue jobs that are late by `late_by`, and the other items that `TableScan` finds.
        """
        token = self._new_token()
        taken = self._change(lambda found: self._taken(found, token, time_left()))
        if taken is None:
            return self._idle()
        try:
            report = self._work(taken, work, late_by=late_by, time_left=time_left)
        finally:
            # Best effort: otherwise the pass is free when `held_until` has passed.
            with suppress(StoreUnavailableError):
                self._change(lambda found: _let_go(found, token))
        return report

    def _idle(self) -> PassReport:
        """The pass as other runs leave it."""
        now = self._clock()
        found = self._store.read() or first_pass(now)
        report = PassReport(table_pass=found, age=now - found.covered_since, done=found.segments)
        if not found.open:
            return report
        segments = [self._store.segment(found, number) for number in range(found.segments)]
        return replace(
            report,
            busy=found.held(now),
            done=sum(segment.done for segment in segments),
            items=sum(segment.items for segment in segments),
        )

    def _taken(self, found: TablePass | None, token: str, time_left: timedelta) -> TablePass | None:
        now = self._clock()
        if found and found.held(now):
            return None
        workable = found.workable(now) if found else first_pass(now)
        until = now + min(time_left, _LONGEST_HOLD)
        return workable and replace(workable, held_by=token, held_until=until)

    def _work(
        self, table_pass: TablePass, work: PageWork, *, late_by: timedelta, time_left: Callable[[], timedelta]
    ) -> PassReport:
        interrupted = False

        def left() -> timedelta:
            return timedelta(0) if interrupted else time_left() - RESERVE

        def read(number: int) -> tuple[SegmentEnd, int, int]:
            return self._segment(table_pass, number, work, late_by, left)

        order = sorted(range(table_pass.segments), key=lambda _: self._draw())
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                results = list(pool.map(read, order))
            except KeyboardInterrupt:
                interrupted = True
                raise
        ends = [end for end, _, _ in results]
        ended = None
        if ends.count(SegmentEnd.DONE) == table_pass.segments:
            number = table_pass.number
            ended = self._change(lambda found: self._ended(found, number))
            table_pass = ended or table_pass
        return PassReport(
            table_pass=table_pass,
            age=self._clock() - table_pass.covered_since,
            completed=ended is not None,
            done=ends.count(SegmentEnd.DONE),
            failed=ends.count(SegmentEnd.FAILED),
            unfinished=ends.count(SegmentEnd.UNFINISHED),
            read=sum(read for _, read, _ in results),
            items=sum(items for _, _, items in results),
        )

    def _ended(self, found: TablePass | None, number: int) -> TablePass | None:
        """None if a later pass has begun or another run ended this one."""
        return found.ended(self._clock()) if found and found.number == number and found.open else None

    def _segment(
        self,
        table_pass: TablePass,
        number: int,
        work: PageWork,
        late_by: timedelta,
        left: Callable[[], timedelta],
    ) -> tuple[SegmentEnd, int, int]:
        """Read one segment from its cursor: why it ended, and the items read by this run and by the pass."""
        before = segment = Segment(pass_number=table_pass.number, number=number)
        try:
            before = segment = self._store.segment(table_pass, number)
            paid = True
            while not segment.done:
                if not paid or left() <= timedelta(0):
                    return SegmentEnd.UNFINISHED, segment.items - before.items, segment.items
                page = self.scan.page(
                    number, of=table_pass.segments, after=segment.cursor, overdue_since=self._clock() - late_by
                )
                worked, complete = _worked(page.found, work)
                if not complete and segment.tries + 1 < MOST_TRIES:
                    self._store.save(replace(segment, tries=segment.tries + 1))
                    return SegmentEnd.FAILED, segment.items - before.items, segment.items
                moved = self._past(segment, page, worked)
                saved = moved and self._store.save(moved)
                segment = saved or segment
                if not saved or worked < len(page.found):
                    return SegmentEnd.UNFINISHED, segment.items - before.items, segment.items
                paid = self._pace.spend(page.read_units, within=left())
        except StoreUnavailableError:
            return SegmentEnd.FAILED, segment.items - before.items, segment.items
        return SegmentEnd.DONE, segment.items - before.items, segment.items

    def _past(self, segment: Segment, page: ScanPage, worked: int) -> Segment | None:
        """The segment after the items of the page that were worked, or None without any."""
        if worked == len(page.found):
            return segment.past(page.cursor, page.items)
        return segment.past(self.scan.cursor_after(page.found[worked - 1]), worked) if worked else None

    def _change(self, change: Callable[[TablePass | None], TablePass | None]) -> TablePass | None:
        """Write what `change` makes of the present pass. None if it makes nothing of it."""
        for _ in range(_WRITE_TRIES):
            changed = change(self._store.read())
            if changed is None or self._store.write(changed):
                return changed
        raise StoreUnavailableError("other writes kept replacing the state of the pass")


def _worked(page: Sequence[Found], work: PageWork) -> tuple[int, bool]:
    """The number of items that were worked before the time ended, and whether none of them failed."""
    worked, complete = 0, True
    with suppress(TimeoutError):
        for found in page:
            complete = work(found) and complete
            worked += 1
    return worked, complete


def _let_go(found: TablePass | None, token: str) -> TablePass | None:
    return replace(found, held_by=None, held_until=None) if found and found.held_by == token else None
