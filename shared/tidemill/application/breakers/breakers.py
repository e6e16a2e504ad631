"""The breakers of one execution environment: cached states, counted results, and the transitions that follow.

A closed breaker costs one read in each `CACHED_FOR`, and no write. A failure costs a write, which
tells its worker at once whether the breaker is open.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct, field

from tidemill.application.configuration import CurrentConfiguration, nothing_set
from tidemill.application.ports import Clock
from tidemill.domain.breakers import breaker as rules
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, BreakerState, Callers
from tidemill.domain.breakers.breaker_settings import forced_state
from tidemill.domain.breakers.latest_tenants import LatestTenants
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Rate
from tidemill.domain.operations.setting import Setting
from tidemill.domain.spans import is_within

#: How long an environment uses what it has read. A worker that has just failed knows more at once; another one may
#: begin a run for so long after a breaker opened or closed.
CACHED_FOR: Final = timedelta(seconds=2)
#: How often a transition is tried. Each try uses the item that refused the one before.
_TRIES: Final = 4
#: A run that has so little time left does not wait for what others say.
_RESERVE: Final = timedelta(seconds=1)


class BreakerStore(Protocol):
    """The breakers in the table. All methods raise `StoreUnavailableError`."""

    def read(self, name: str, *, consistent: bool = False) -> Breaker:
        """A closed one if the table has none of that name."""

    def fail(
        self, seen: Breaker, policy: BreakerPolicy, *, calls: int, call: str, by: Callers, error: str, now: datetime
    ) -> Breaker:
        """Count a failure of a closed breaker, once for each `call`; the breaker after it. An open one counts none.

        `calls` are those that this write adds, with the failed one.
        """

    def contradict(self, seen: Breaker, serving: Callers) -> Breaker:
        """Add those that are served to the window that was seen, unless it is over; the present breaker."""

    def move(self, seen: Breaker, after: Breaker) -> tuple[bool, Breaker]:
        """Whether `after` was written, and the present breaker: refused if another worker has moved it since `seen`."""


#: Gets a breaker before and after each transition that this environment has written.
Moved = Callable[[Breaker, Breaker], None]


class _Known(Struct):
    breaker: Breaker
    read_at: datetime
    #: Whether the last read failed, so that the breaker may have changed since.
    unread: bool
    #: Successes since `counted_from` that no write has counted.
    successes: int = 0
    counted_from: datetime | None = None
    #: The tenants whose calls succeeded here.
    served: LatestTenants = field(default_factory=LatestTenants)


class Breakers:
    """Threads share it. A store that does not respond leaves the last known state, and changes no outcome of a job."""

    def __init__(
        self,
        store: BreakerStore,
        *,
        clock: Clock,
        pause: Callable[[float], None],
        configuration: CurrentConfiguration = nothing_set,
        moved: Moved = lambda _before, _after: None,
    ) -> None:
        self._configuration = configuration
        self._store = store
        self._clock = clock
        self._pause = pause
        self._moved = moved
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._known: dict[str, _Known] = {}
        #: A name for this process: the token of its first run.
        self._worker = ""

    def look(self, name: str, *, afresh: bool = False) -> Breaker:
        """At most `CACHED_FOR` old; older only if it cannot be read. `afresh` reads it consistently."""
        if afresh:
            return self._read_or_known(name, consistent=True)
        if fresh := self._fresh(name):
            return fresh
        with self._reading:
            # Another thread may have read it while this one waited.
            return self._fresh(name) or self._read_or_known(name, consistent=False)

    def forced(self, name: str) -> BreakerState | None:
        """The state that an operator forces it into. Its results decide nothing meanwhile."""
        setting = self._setting(name)
        return forced_state(name, setting.value) if setting else None

    def drain_rate(self, name: str, *, at: datetime) -> Rate:
        """How fast its jobs start at that time, since it closed or was forced closed."""
        setting = self._setting(name)
        since = self.look(name).since
        return rules.drain_rate(since=max(since, setting.at) if setting else since, at=at)

    def blocks(self, name: str) -> bool:
        """Whether jobs wait for it."""
        return (self.forced(name) or self.look(name).state) is not BreakerState.CLOSED

    def holds_line(self, name: str) -> bool:
        """Whether the breaker blocks, by a known state.

        Raises `StoreUnavailableError`, and `ValueError` for a newer state.

        A worker that cannot read a breaker lets its job call. A whole line is not released on a guess.
        """
        blocked = self.blocks(name)
        if self.forced(name) or not self._known[name].unread:
            return blocked
        return not self._read(name, consistent=False).closed

    def open_for(self, name: str) -> timedelta:
        """Since its outage began. Zero while it is closed, or has no probe because no job waits for it, or is forced.

        The operator who forces it decides how long.
        """
        if self.forced(name):
            return timedelta(0)
        breaker = self.look(name)
        waits = not breaker.closed and not breaker.may_elect(now=self._clock())
        return max(self._clock() - breaker.outage_since, timedelta(0)) if waits else timedelta(0)

    def would_admit(self, policy: BreakerPolicy) -> bool:
        """Whether `admits` would say yes at this moment. It changes nothing."""
        if forced := self.forced(policy.name):
            return forced is BreakerState.CLOSED
        breaker = self._look_if_open(policy.name)
        return breaker.closed or breaker.may_probe(now=self._clock())

    def admits(self, policy: BreakerPolicy, job: Job) -> bool:
        """Whether the run of this job may call the downstream: the breaker is closed, or the job is now its probe."""
        if forced := self.forced(policy.name):
            return forced is BreakerState.CLOSED
        breaker = self._contradict(policy, self._look_if_open(policy.name), job)
        breaker = self._opened_if_due(policy, breaker)
        for _ in range(_TRIES):
            now = self._clock()
            if breaker.closed:
                return True
            if not breaker.may_probe(now=now):
                return False
            after = rules.probing(breaker, job, now=now, lease_end=job.due or now)
            written, breaker = self._move(breaker, after)
            if written:
                return True
        return False

    def succeeded(self, policy: BreakerPolicy, job: Job, *, counts: bool = True) -> bool:
        """A call succeeded, or the downstream refused it for ever, which only one that works does.

        With `counts` False, another job of the same call has counted it. The result is False if the store did not
        respond: it may be reported again.
        """
        known, now = self._known.get(policy.name), self._clock()
        if known is None:
            return True
        if self.forced(policy.name):
            return self._ended_while_forced(policy.name, job)
        if not known.breaker.closed:
            return self._resolved(self.look(policy.name), job, lambda breaker: rules.closed(breaker, now=self._clock()))
        with self._lock:
            if known.counted_from is None or known.counted_from <= now - policy.window:
                known.successes, known.counted_from = 0, now
            known.successes += int(counts)
            known.served.note(job.tenant, now)
        self._contradict(policy, known.breaker, job)
        return True

    def failed(self, policy: BreakerPolicy, job: Job, *, call: str, error: str, counts: bool = True) -> bool:
        """A call failed, and the downstream is to blame. `call` tells it from every other call.

        `counts` and the result are as for `succeeded`. A failure that is not counted changes nothing for the job, which
        has failed all the same.
        """
        if self.forced(policy.name):
            return self._ended_while_forced(policy.name, job)
        breaker, now = self.look(policy.name), self._clock()
        try:
            if breaker.closed and counts:
                by = Callers(frozenset({self._name(job)}), frozenset({job.tenant}))
                calls = 1 + self._take_successes(policy.name, rules.counts_from(breaker, policy, now=now))
                before = self._version(policy.name)
                counted = self._store.fail(breaker, policy, calls=calls, call=call, by=by, error=error, now=now)
                breaker = self._learned(counted, before=before)
                # Another tenant may have been served here meanwhile.
                breaker = self._contradict(policy, breaker, job)
            if rules.trips(breaker, policy) and rules.heard_at(breaker, policy) <= now:
                self._open(policy, breaker)
        except TidemillError:
            return False
        return self._resolved(self.look(policy.name), job, lambda probed: rules.failed(probed, job, error=error))

    def hear_others(self, policy: BreakerPolicy, *, until: datetime) -> None:
        """The failed run of a worker or tenant that fails alone waits until others have had the time to contradict.

        Then the breaker opens, or stays as it is. Without the wait, its thread would go on to the next call, which
        fails as well. A run that has to end before, at `until`, leaves the decision to the next one.
        """
        known, now = self._known.get(policy.name), self._clock()
        if known is None or self.forced(policy.name) or not rules.trips(known.breaker, policy):
            return
        wait = min(rules.heard_at(known.breaker, policy) - now, rules.HEARD_WITHIN)
        if wait <= timedelta(0) or now + wait + _RESERVE > until:
            return
        self._pause(wait.total_seconds())
        breaker = self._read_or_known(policy.name, consistent=True)
        if rules.trips(breaker, policy):
            with suppress(TidemillError):
                self._open(policy, breaker)

    def give_up(self, name: str, job: Job) -> None:
        """The run has ended. If the job is still the probe, its result is unknown, and another one is elected."""
        # It may have been elected a moment ago.
        self._resolved(self._look_if_open(name), job, rules.given_up)

    def keep_open(self, name: str) -> None:
        """It is forced open: also without the force it is open, so that a probe and the drain follow the force.

        Raises `StoreUnavailableError`.
        """
        breaker = self.look(name)
        if breaker.closed:
            self._move(breaker, rules.opened(breaker, probe_interval=breaker.probe_interval, now=self._clock()))

    def elect(self, breaker: Breaker, job: Job) -> datetime | None:
        """The time of its probe, if the job is now the elected one. Raises `StoreUnavailableError`."""
        after = rules.elected(breaker, job, now=self._clock())
        written, _ = self._move(breaker, after)
        return after.probe_at if written else None

    def _setting(self, name: str) -> Setting | None:
        return self._configuration().forced_breaker(name, now=self._clock())

    def _fresh(self, name: str) -> Breaker | None:
        now, known = self._clock(), self._known.get(name)
        return known.breaker if known and is_within(CACHED_FOR, since=known.read_at, now=now) else None

    def _read_or_known(self, name: str, *, consistent: bool) -> Breaker:
        try:
            return self._read(name, consistent=consistent)
        except (TidemillError, ValueError):
            with self._lock:
                now = self._clock()
                known = self._known.setdefault(name, _Known(Breaker(name=name), now, unread=True))
                # The next read is made as late as after a success.
                known.read_at, known.unread = now, True
                return known.breaker

    def _read(self, name: str, *, consistent: bool) -> Breaker:
        before = self._version(name)
        breaker = self._store.read(name, consistent=consistent)
        if breaker.version < before and not consistent:
            # The read was answered by a copy of the item that lags. A probe must not lose its own election to it.
            breaker = self._store.read(name, consistent=True)
        return self._learned(breaker, before=before)

    def _look_if_open(self, name: str) -> Breaker:
        breaker = self.look(name)
        # It may have changed a moment ago, and the job have been released for that.
        return breaker if breaker.closed else self.look(name, afresh=True)

    def _opened_if_due(self, policy: BreakerPolicy, breaker: Breaker) -> Breaker:
        """The worker that counted the last failure may have ended, or met an error, before it opened it."""
        now = self._clock()
        over = rules.window_is_over(breaker, policy, now=now)
        if not rules.trips(breaker, policy) or over or now < rules.heard_at(breaker, policy):
            return breaker
        try:
            return self._open(policy, breaker)
        except TidemillError:
            return breaker

    def _open(self, policy: BreakerPolicy, breaker: Breaker) -> Breaker:
        after = rules.opened(breaker, probe_interval=policy.probe_interval, now=self._clock())
        return self._move(breaker, after)[1]

    def _contradict(self, policy: BreakerPolicy, breaker: Breaker, job: Job) -> Breaker:
        """Say that calls succeed here, if one other worker or tenant alone fails. The breaker after it."""
        with self._lock:
            served = self._known[policy.name].served.times()
        now, worker = self._clock(), self._name(job)
        serving = rules.contradiction(breaker, policy, worker=worker, served=served, now=now)
        if not serving:
            return breaker
        try:
            before = self._version(policy.name)
            return self._learned(self._store.contradict(breaker, serving), before=before)
        except TidemillError:
            return breaker

    def _name(self, job: Job) -> str:
        with self._lock:
            self._worker = self._worker or job.lease.owner or job.id
            return self._worker

    def _ended_while_forced(self, name: str, job: Job) -> bool:
        """The result decides nothing, but the job is the probe no more. It was if this environment has made it so."""
        known = self._known.get(name)
        return known is None or self._resolved(known.breaker, job, rules.given_up)

    def _resolved(self, breaker: Breaker, job: Job, change: Callable[[Breaker], Breaker]) -> bool:
        """The transition that ends the probe of this job. A breaker that another job probes stays as it is.

        False if the store did not respond. At the latest, the probe ends with its lease, and wake elects another.
        """
        try:
            for _ in range(_TRIES):
                if breaker.closed or breaker.probe != (job.tenant, job.id):
                    break
                # Once it is written, the breaker is closed, or the job is the probe no more.
                _, breaker = self._move(breaker, change(breaker))
        except TidemillError:
            return False
        return True

    def _move(self, seen: Breaker, after: Breaker) -> tuple[bool, Breaker]:
        before = self._version(seen.name)
        written, present = self._store.move(seen, after)
        self._learned(present, before=before)
        if written:
            self._moved(seen, after)
        return written, present

    def _version(self, name: str) -> int:
        known = self._known.get(name)
        return known.breaker.version if known else 0

    def _learned(self, answer: Breaker, *, before: int) -> Breaker:
        """The present breaker, after the answer of a call that began when the version `before` was known.

        Of two threads, the first may get its answer last: it must not bring back what a later transition has changed.
        """
        with self._lock:
            now = self._clock()
            known = self._known.setdefault(answer.name, _Known(answer, now, unread=False))
            overtaken = known.breaker.version > max(before, answer.version)
            if not overtaken:
                known.breaker, known.read_at, known.unread = answer, now, False
            return known.breaker

    def _take_successes(self, name: str, since: datetime) -> int:
        with self._lock:
            known = self._known[name]
            counts = known.counted_from is not None and known.counted_from > since
            # The next success counts from 1.
            known.counted_from = None
            return known.successes if counts else 0
