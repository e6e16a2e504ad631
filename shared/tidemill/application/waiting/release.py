"""Release: queue parked jobs whose turn has come, in the order of their line.

A worker calls it for the line of the slot that it gives back, and after it has parked a job. Wake calls it for every
line, each minute. It may run any number of times, and several at once: the limit item and the documents decide.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tidemill.application.breakers.breakers import Breakers
from tidemill.application.breakers.probe_election import elect_probe
from tidemill.application.configuration import CurrentConfiguration, nothing_set
from tidemill.application.ports import Clock, Draw, Limits, LimitSlot, Part, ReleaseStore
from tidemill.domain.errors import (
    MalformedDocumentError,
    OutdatedChangeError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange, RunSample, change_after, changed
from tidemill.domain.limits.limit_state import MOST_AT_ONCE, RESERVED, LimitState, Turn, reservation_name, run_name
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line

#: How often a release looks again, when another one or a run was faster.
_TRIES: Final = 4
#: The lines at which wake looks at once. Each queues a job at a time, in some ten milliseconds, so together they keep
#: to `wake.MOST_PER_SECOND`.
_AT_ONCE: Final = 4
#: The lines that wake takes before it checks its time for all of the rest.
_LINES_BETWEEN_CHECKS: Final = 200
#: A worker lists the line before it parks the job. No invocation lasts longer than 15 minutes, so after this time that
#: job is parked, and the index shows it. https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
LISTED_AT_LEAST: Final = timedelta(minutes=20)


#: Gets the change of a run that lowered an adaptive concurrency.
Lowered = Callable[[ConcurrencyChange], None]


def unobserved(_change: ConcurrencyChange) -> None:
    """`Lowered` of a caller that writes no log."""


class Released(Struct, frozen=True, kw_only=True):
    """The result of one call of wake, or of one look at a line."""

    jobs: tuple[Job, ...] = ()
    #: Lines that could not be looked at: no time was left, the store did not respond, or a transaction held a job. The
    #: next call takes them.
    left: int = 0
    #: One for each line that this code cannot release.
    failed: tuple[Exception, ...] = ()
    #: How long the breaker that has been open longest, and has a line, is open: see `Breakers.open_for`.
    breaker_open: timedelta = timedelta(0)


class Releaser:
    def __init__(
        self,
        *,
        store: ReleaseStore,
        limits: Limits,
        clock: Clock,
        configuration: CurrentConfiguration = nothing_set,
        lacks_type: Callable[[str], bool] = lambda _name: False,
        breakers: Breakers | None = None,
    ) -> None:
        """`lacks_type` says whether a broken job file keeps the deployed code from knowing this job type."""
        self._store = store
        self._limits = limits
        self._clock = clock
        self._configuration = configuration
        self._lacks_type = lacks_type
        self._breakers = breakers

    def release(
        self,
        line: Line,
        *,
        leaving: str | None = None,
        limit: Limit | None = None,
        parked: Job | None = None,
        sample: RunSample | None = None,
        lowered: Lowered = unobserved,
    ) -> list[Job]:
        """The released jobs. `leaving` is a slot that its holder gives back: the first job gets it, or it is free.

        `limit` is the declared one, if the caller knows it: the item has that of the last job that found no room.
        `parked` is a job that was just parked, which the index may not show yet. `sample` is what the leaving run
        measured, and `lowered` gets the decrease that it caused. Raises `StoreUnavailableError`.
        """
        released: list[Job] = []
        for _ in range(_TRIES):
            now = self._clock()
            state = self._limits.look(line)
            state = replace(state, limit=self._in_force(line, state, limit, now))
            if leaving not in (state.held or ()):
                leaving = None
            change = _change(state, leaving, sample, now)
            times = _with_change(state, change).turns(now, leaving=leaving)
            most = len(times) + state.reservations()
            waiting, unread = self._waiting(line, state, parked, most=most)
            turns = _turns(waiting, state, times)
            if leaving is not None and all(turn.reserved for _, turn in turns):
                # A job may be parked just now, and have found the slot taken. So free it before the last look.
                leaving = self._vacated(line, leaving, change, lowered)
                continue
            if not waiting:
                # Only a newer version can release its own jobs. It finds them by the mark, so keep that for a while.
                if times and state.marked and not unread and parked is None and state.last_at < now - LISTED_AT_LEAST:
                    self._limits.clear(line, state)
                break
            granted = [turn for _, turn in turns]
            if self._limits.reserve(line, state, granted, leaving=leaving, now=now, change=change):
                _report(lowered, change)
                leaving = None
                unused = [turn for job, turn in turns if not self._unpark(job, turn, released)]
                if not unused:
                    break
                for turn in unused:
                    self._limits.vacate(line, turn.reservation)
        if leaving is not None:
            # Many others write at this moment.
            self._limits.vacate(line, leaving)
        return released

    def leave(self, slot: LimitSlot, *, line_stands: bool, lowered: Lowered = unobserved) -> None:
        """Give the slot of a run back, to the first job of its line if there is one.

        An adaptive concurrency changes with the same write, and `lowered` gets the decrease that the run caused.
        Best effort: a slot that is not given back is free when its lease ends, and then wake releases a job.
        """
        with suppress(TidemillError):
            if line_stands or self._handed_over(slot, lowered):
                self.release(
                    slot.line, leaving=run_name(slot.token), limit=slot.lasting, sample=slot.sample, lowered=lowered
                )

    def _handed_over(self, slot: LimitSlot, lowered: Lowered) -> bool:
        """Release the slot in the limit item. The change counts with what the run knew when it entered."""
        sample, bounds = slot.sample, slot.limit.adaptive
        change = change_after(bounds, sample.entered, sample, now=self._clock()) if bounds and sample else None
        try:
            left = self._limits.release(slot, change)
        except OutdatedChangeError:
            return self._limits.release(slot)
        if not left:
            _report(lowered, change)
        return left

    def _vacated(self, line: Line, name: str, change: ConcurrencyChange | None, lowered: Lowered) -> str | None:
        """None once the slot is free, or the name again if its run must measure anew."""
        try:
            self._limits.vacate(line, name, change)
        except OutdatedChangeError:
            return name
        _report(lowered, change)
        return None

    def pass_on(self, job: Job) -> None:
        """A released job did not ask for its slot: the next of its line gets it. Best effort, as `leave`.

        For example its deadline has passed. Each job of its line might keep the slot for a minute otherwise.
        """
        if job.wait and job.wait.cause is Cause.LIMIT:
            with suppress(TidemillError):
                self.release(job.wait.line, leaving=reservation_name(job.tenant, job.id))
        elif job.wait and job.wait.cause is Cause.BREAKER:
            # After each run, so that the line drains at its rate, which grows faster than wake comes.
            self.drain(job.wait.line)

    def drain(self, line: Line) -> None:
        """The next jobs of the line of a breaker. Best effort, as `leave`."""
        with suppress(TidemillError):
            self.release_from_breaker(line)

    def look_again(self, job: Job) -> None:
        """After the park of `job`: a run may have left before it could see that the job waits. Best effort, as wake."""
        if job.wait and job.wait.cause is Cause.LIMIT:
            with suppress(TidemillError):
                self.release(job.wait.line, parked=job)
        elif job.wait and job.wait.cause is Cause.BREAKER:
            with suppress(TidemillError):
                self.release_from_breaker(job.wait.line, parked=job)

    def release_from_breaker(self, line: Line, *, parked: Job | None = None) -> list[Job]:
        """The next jobs if the breaker has closed, or else its probe, if it needs one. Arguments as `release`."""
        if self._breakers is None or not self._breakers.holds_line(line.key):
            return self.release(line, parked=parked)
        if self._breakers.forced(line.key):
            self._breakers.keep_open(line.key)
            return []
        probe = elect_probe(line, breakers=self._breakers, store=self._store, clock=self._clock, parked=parked)
        return [probe] if probe else []

    def release_all(self, *, part: Part, in_time: Callable[[], bool], draw: Draw) -> Released:
        """Release from every line, in random order, so that none is always the one for which no time is left.

        Several lines at once: thousands may stand, of which each costs two reads.

        A line that gives a full release comes again once each of the others has had one: many jobs of one line, as
        after a pause, keep no job of another waiting. The line of a pause in force is left alone, and that of a type
        which this code cannot load. If the configuration is stale, any pause may be in force. The parts go round with
        each interval, as those of `Waker.wake`.
        """
        looks: list[Released] = []
        lines = deque(sorted(self._limits.lines(part.at(self._clock())), key=lambda _: draw()))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            # Without a look at any of the rest, which may be hundreds of thousands.
            while lines and in_time():
                some = [lines.popleft() for _ in range(min(_LINES_BETWEEN_CHECKS, len(lines)))]
                done = list(pool.map(lambda line: self._look_at(line, in_time), some))
                looks += done
                lines += (line for line, look in zip(some, done, strict=True) if len(look.jobs) >= MOST_AT_ONCE)
        return Released(
            jobs=tuple(job for look in looks for job in look.jobs),
            left=len(lines) + sum(look.left for look in looks),
            failed=tuple(error for look in looks for error in look.failed),
            breaker_open=max((look.breaker_open for look in looks), default=timedelta(0)),
        )

    def _look_at(self, line: Line, in_time: Callable[[], bool]) -> Released:
        try:
            if not in_time():
                return Released(left=1)
            if self._stands(line):
                return Released()
            release = self.release_from_breaker if line.cause is Cause.BREAKER else self.release
            released = release(line)
            # If a job waits, the probe of an open one is elected by now.
            return Released(jobs=tuple(released), breaker_open=self._open_for(line))
        except (StoreUnavailableError, TransactionConflictError):
            return Released(left=1)
        except Exception as error:  # noqa: BLE001 - one line that cannot be read must not stop the others
            return Released(failed=(error,))

    def _stands(self, line: Line) -> bool:
        """Whether the cause of the line has not ended, as far as the configuration and the job types say so."""
        configuration = self._configuration()
        if line.cause is Cause.PAUSE and configuration.stale:
            return True
        if configuration.pause_of_line(line, now=self._clock()):
            return True
        return line.cause is Cause.TYPE and self._lacks_type(line.key)

    def _open_for(self, line: Line) -> timedelta:
        """It costs no read: the release of the line has read it."""
        if self._breakers is None or line.cause is not Cause.BREAKER:
            return timedelta(0)
        return self._breakers.open_for(line.key)

    def _in_force(self, line: Line, state: LimitState, declared: Limit | None, now: datetime) -> Limit | None:
        """With what operators have set, unless the line is that of a pause or its type cannot be read."""
        declared = declared or state.limit
        if line.cause is Cause.BREAKER and self._breakers:
            # At the time that the next job gets.
            return Limit(rate=self._breakers.drain_rate(line.key, at=max(now, state.promised)))
        return self._configuration().limit_of(line, declared, last=state.last_tenant, now=now)

    def _waiting(self, line: Line, state: LimitState, parked: Job | None, *, most: int) -> tuple[list[Job], bool]:
        """The first jobs of the line, and whether it shows one that only a newer version can read."""
        if most <= 0 or not state.marked:
            return [], False
        unread: list[str] = []
        jobs = self._store.parked(
            line, most=min(most, MOST_AT_ONCE), unreadable=lambda _tenant, job_id, _error: unread.append(job_id)
        )
        found = {(job.tenant, job.id): job for job in jobs}
        # The index lags. The caller has just parked a job, and the last one that found no room may be parked by now.
        named = {(parked.tenant, parked.id)} if parked else set()
        if state.last and not found:
            named.add(state.last)
        for tenant, job_id in named - set(found):
            try:
                job = self._store.get(tenant, job_id)
            except MalformedDocumentError:
                # A newer version may have parked it, which releases it too.
                unread.append(job_id)
                continue
            if job and job.state is State.PARKED and job.wait and job.wait.line == line:
                found[tenant, job_id] = job
        return sorted(found.values(), key=lambda job: (job.created_at, job.id)), bool(unread)

    def _unpark(self, job: Job, turn: Turn, released: list[Job]) -> bool:
        """False if the job will not come for its turn."""
        try:
            self._store.unpark(job, now=self._clock(), due=turn.due)
        except WriteRefusedError as refused:
            # It was cancelled, or another release was faster. Then it may be on its way to this very turn.
            current = refused.current
            return current is not None and not current.state.terminal and current.generation <= job.generation + 1
        except TransactionConflictError:
            # A transaction holds it for a moment. The turn stays reserved, and the next release queues the job.
            return True
        released.append(job)
        return True


def _change(
    state: LimitState, leaving: str | None, sample: RunSample | None, now: datetime
) -> ConcurrencyChange | None:
    bounds = state.limit.adaptive if state.limit else None
    return change_after(bounds, state.adapted, sample, now=now) if bounds and leaving else None


def _with_change(state: LimitState, change: ConcurrencyChange | None) -> LimitState:
    return replace(state, adapted=changed(state.adapted, change)) if state.adapted else state


def _report(lowered: Lowered, change: ConcurrencyChange | None) -> None:
    if change and change.lowered:
        lowered(change)


def _turns(waiting: Sequence[Job], state: LimitState, times: Sequence[datetime]) -> list[tuple[Job, Turn]]:
    """A turn for each job for which there is a time, and for each that an interrupted release has reserved a slot."""
    free = iter(times)
    turns = []
    for job in waiting:
        name = reservation_name(job.tenant, job.id)
        reserved = (state.held or {}).get(name)
        due = reserved - RESERVED if reserved else next(free, None)
        if due:
            turns.append((job, Turn(reservation=name, due=due, reserved=reserved is not None)))
    return turns
