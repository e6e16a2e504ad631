"""The cached configuration of an execution environment, and the changes of operators."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.single_job import Clock
from tidemill.application.configuration import (
    CACHED_FOR,
    STALE_AFTER,
    CachedConfiguration,
    Configurator,
    nothing_set,
)
from tidemill.application.waiting.release import LISTED_AT_LEAST
from tidemill.cdk.lanes.lane_config import LONGEST_FUNCTION_TIMEOUT_SECONDS
from tidemill.domain.errors import ConfigurationConflictError, InvalidSettingError, StoreUnavailableError
from tidemill.domain.limits.limits import Rate
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, Change, RuntimeConfiguration
from tidemill.domain.waiting.pauses import Drain, Target
from tidemill.powertools.app_config import POLL_INTERVAL


@dataclass
class World:
    """A configuration to read, and what its cache did."""

    present: RuntimeConfiguration = NOTHING_SET
    error: Exception | None = None
    takes: timedelta = timedelta(0)
    reads: int = 0
    failures: list[Exception] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    drains: list[Drain | None] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)

    @property
    def cached(self) -> CachedConfiguration:
        return CachedConfiguration(self.read, clock=self.clock, failed=self.failures.append)

    def read(self, *, consistent: bool = False) -> RuntimeConfiguration:
        assert consistent or not self.changes
        self.reads += 1
        self.clock.now += self.takes
        if self.error:
            raise self.error
        return self.present

    def acting(self) -> RuntimeConfiguration:
        return self.read()

    def write(self, configuration: RuntimeConfiguration, change: Change, drain: Drain | None = None) -> None:
        if configuration.version != self.present.version + 1:
            raise ConfigurationConflictError
        self.present = configuration
        self.changes.append(change)
        self.drains.append(drain)

    def deploy(self) -> None:
        raise NotImplementedError

    def history(self) -> Iterator[Change]:
        return reversed(self.changes)


def version(number: int) -> RuntimeConfiguration:
    return RuntimeConfiguration(version=number)


def test_one_read_serves_all_uses_of_five_seconds() -> None:
    world = World(version(1))
    cached = world.cached

    assert cached.current().version == 1
    world.present = version(2)
    world.clock.now = NOW + CACHED_FOR - SECOND / 1000
    assert (cached.current().version, world.reads) == (1, 1)
    world.clock.now = NOW + CACHED_FOR
    assert (cached.current().version, world.reads) == (2, 2)
    assert timedelta(seconds=5) == CACHED_FOR


def test_the_age_of_a_value_counts_from_the_begin_of_its_read() -> None:
    world = World(version(1), takes=SECOND)
    cached = world.cached

    cached.current()
    world.clock.now = NOW + CACHED_FOR
    cached.current()

    assert world.reads == 2


def test_a_clock_that_is_set_back_does_not_keep_a_value() -> None:
    world = World(version(1))
    cached = world.cached
    cached.current()

    world.clock.now = NOW - SECOND
    world.present = version(2)

    assert cached.current().version == 2


@pytest.mark.parametrize("error", [StoreUnavailableError("down"), KeyError("document")])
def test_while_reads_fail_the_last_known_values_hold_and_no_use_reads_more_often(error: Exception) -> None:
    world = World(version(1))
    cached = world.cached
    cached.current()
    world.error = error
    for _ in range(3):
        world.clock.now += CACHED_FOR
        assert [cached.current().version for _ in range(4)] == [1] * 4

    assert (world.reads, world.failures) == (4, [error] * 3)
    world.error, world.present = None, version(2)
    world.clock.now += CACHED_FOR
    assert cached.current().version == 2


def test_a_read_that_hangs_is_not_made_again_at_once() -> None:
    """It takes longer than a value lasts, and all threads of a worker wait for it."""
    world = World(version(1), takes=CACHED_FOR + SECOND)
    cached = world.cached
    cached.current()
    world.error = StoreUnavailableError("down")

    assert [cached.current().version for _ in range(4)] == [1] * 4
    assert (world.reads, len(world.failures), cached.confirmed) == (2, 1, False)
    world.clock.now += CACHED_FOR
    cached.current()
    assert world.reads == 3


def test_before_the_first_answer_nothing_is_set() -> None:
    world = World(version(1), error=StoreUnavailableError("down"))

    assert world.cached.current() == replace(NOTHING_SET, stale=True)
    assert nothing_set() == NOTHING_SET


@pytest.mark.parametrize("later", [STALE_AFTER, -SECOND])
def test_values_that_cannot_be_read_again_are_stale_after_two_minutes(later: timedelta) -> None:
    world = World(version(1))
    cached = world.cached
    assert cached.current() == version(1)
    world.error = StoreUnavailableError("down")
    world.clock.now = NOW + STALE_AFTER - CACHED_FOR
    assert cached.current() == version(1)
    world.clock.now = NOW + later
    assert cached.current() == replace(version(1), stale=True)

    world.error = None
    world.clock.now += CACHED_FOR
    assert cached.current() == version(1)


def test_what_a_function_does_with_a_value_ends_before_wake_forgets_the_line_of_a_pause() -> None:
    longest = timedelta(seconds=LONGEST_FUNCTION_TIMEOUT_SECONDS)
    assert STALE_AFTER + POLL_INTERVAL + longest < LISTED_AT_LEAST


def test_threads_that_need_it_at_once_share_one_read() -> None:
    began, go = threading.Event(), threading.Event()
    world = World(version(1))

    def slow() -> RuntimeConfiguration:
        began.set()
        go.wait()
        return world.read()

    cached = CachedConfiguration(slow, clock=world.clock, failed=world.failures.append)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(cached.current().version)) for _ in range(4)]
    for thread in threads:
        thread.start()
    began.wait()
    go.set()
    for thread in threads:
        thread.join()

    assert (found, world.reads) == ([1] * 4, 1)


def test_a_change_has_the_next_version_and_its_record() -> None:
    world = World(version(6))
    configurator = Configurator(store=world, clock=world.clock)

    until = NOW + SECOND
    made = configurator.set(configurator.read(), "flags.a", 1, by="arn:ops", reason="why", until=until)
    removed = configurator.remove(made, "flags.a", by="arn:other", reason="done")

    assert (made.version, made.flags(NOW)) == (7, {"a": 1})
    assert (removed.version, removed.flags(NOW), world.present) == (8, {}, removed)
    assert list(configurator.history()) == [
        Change(version=8, name="flags.a", at=NOW, by="arn:other", reason="done", value=None, removed=True),
        Change(version=7, name="flags.a", at=NOW, by="arn:ops", reason="why", value=1, until=until),
    ]


def test_a_change_of_an_old_version_is_a_conflict() -> None:
    world = World(version(6))
    configurator = Configurator(store=world, clock=world.clock)
    seen = configurator.read()
    configurator.set(seen, "flags.a", 1, by="arn:ops", reason="")

    with pytest.raises(ConfigurationConflictError):
        configurator.set(seen, "flags.b", 1, by="arn:other", reason="")
    with pytest.raises(ConfigurationConflictError, match="has version 7, not 6"):
        configurator.read(expected=6)
    assert configurator.read(expected=7).flags(NOW) == {"a": 1}


def test_an_invalid_change_writes_nothing() -> None:
    world = World(version(6))
    configurator = Configurator(store=world, clock=world.clock)

    with pytest.raises(InvalidSettingError):
        configurator.set(configurator.read(), "other", 1, by="arn:ops", reason="")
    assert world.changes == []


def test_a_pause_marks_its_line_and_its_end_counts_from_the_last_known_time() -> None:
    world = World(version(6))
    configurator = Configurator(store=world, clock=world.clock)
    line, ten, three = Target.parse("type=a").line, Rate(count=10, period=SECOND), Rate(count=3, period=SECOND)

    first = configurator.set(configurator.read(), "pauses.type=a", {}, by="arn:ops", reason="")
    until = NOW + 9 * SECOND
    second = configurator.set(first, "pauses.type=a", {"rate": 3}, by="arn:ops", reason="", until=until)
    world.clock.now += SECOND
    third = configurator.remove(second, "pauses.type=a", by="arn:ops", reason="")
    again = configurator.set(third, "pauses.type=a", {"rate": 3}, by="arn:ops", reason="")
    last = configurator.remove(again, "pauses.type=a", by="arn:ops", reason="", drain_rate=ten)
    configurator.set(last, "flags.a", 1, by="arn:ops", reason="")

    assert world.drains == [
        Drain(line=line, rate=ten, ends_at=NOW),
        Drain(line=line, rate=three, ends_at=until),
        Drain(line=line, rate=three, ends_at=NOW + SECOND),
        Drain(line=line, rate=three, ends_at=NOW + SECOND),
        Drain(line=line, rate=ten, ends_at=NOW + SECOND),
        None,
    ]


def test_a_pause_of_a_newer_version_can_be_removed() -> None:
    document = {"settings": {"pauses.region=eu": {"value": {}, "at": NOW.isoformat(), "by": "a", "reason": ""}}}
    world = World(RuntimeConfiguration(version=1, document=document))
    configurator = Configurator(store=world, clock=world.clock)

    configurator.remove(configurator.read(), "pauses.region=eu", by="arn:ops", reason="")

    assert world.drains == [None]


def test_it_is_confirmed_by_the_last_read_alone() -> None:
    world = World(version(1))
    cached = world.cached
    said = [cached.confirmed]
    for error in (None, StoreUnavailableError("down"), None):
        world.error = error
        cached.current()
        said.append(cached.confirmed)
        world.clock.now += CACHED_FOR

    assert said == [False, True, False, True]


def test_it_is_not_confirmed_by_a_first_read_that_failed() -> None:
    world = World(error=StoreUnavailableError("down"))
    cached = world.cached
    cached.current()
    assert not cached.confirmed


def test_a_value_that_was_read_at_this_moment_is_not_stale() -> None:
    world = World(version(1))
    cached = CachedConfiguration(world.read, clock=world.clock, failed=world.failures.append, lasts=timedelta(0))
    cached.current()
    world.error = StoreUnavailableError("down")
    assert not cached.current().stale
    assert world.reads == 2


def test_only_the_end_of_a_pause_empties_a_line() -> None:
    world = World()
    configurator = Configurator(store=world, clock=world.clock)
    present = configurator.set(world.present, "flags.a", True, by="ada", reason="")

    configurator.remove(present, "flags.a", by="ada", reason="", drain_rate=Rate(count=1, period=SECOND))

    assert world.drains == [None, None]


def test_a_setting_that_this_version_cannot_read_can_be_removed() -> None:
    world = World()
    configurator = Configurator(store=world, clock=world.clock)
    known = configurator.set(world.present, "flags.a", True, by="ada", reason="")
    document = json.loads(json.dumps(known.document).replace('"by": "ada"', '"from": "ada"'))
    newer = RuntimeConfiguration(version=known.version, document=document)
    assert "flags.a" not in newer.settings

    configurator.remove(newer, "flags.a", by="ada", reason="")

    assert (world.changes[-1].removed, world.drains[-1]) == (True, None)
