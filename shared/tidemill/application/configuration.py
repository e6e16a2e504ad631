"""The runtime configuration: a cached read for the functions, and checked changes for operators."""

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from tidemill.application.ports import Clock
from tidemill.domain.errors import ConfigurationConflictError
from tidemill.domain.limits.limits import Rate
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, Change, RuntimeConfiguration, drain_of
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace
from tidemill.domain.spans import is_within
from tidemill.domain.waiting.pauses import Drain

#: How long an execution environment uses what it has read.
CACHED_FOR: Final = timedelta(seconds=5)
#: An older configuration is stale. Wake forgets the line of a pause 20 minutes after its end, and an invocation, which
#: may act at its end on what it read at its begin, lasts 15 minutes at most.
STALE_AFTER: Final = timedelta(minutes=2)

#: The present configuration, for a use case. It never raises.
CurrentConfiguration = Callable[[], RuntimeConfiguration]


def nothing_set() -> RuntimeConfiguration:
    """`CurrentConfiguration` of an app without a runtime configuration."""
    return NOTHING_SET


class ConfigurationStore(Protocol):
    """Where the configuration is: an item of the jobs table, or another service."""

    def read(self, *, consistent: bool = False) -> RuntimeConfiguration:
        """Version 0 if it was never changed. Raises `StoreUnavailableError`."""

    def acting(self) -> RuntimeConfiguration:
        """What the functions read. Raises `StoreUnavailableError`, and never answers from another source instead."""

    def write(self, configuration: RuntimeConfiguration, change: Change, drain: Drain | None = None) -> None:
        """Store it with its change, if the version before it is the present one.

        `drain` is for the change of a pause: wake looks at its line from then on.

        Raises `ConfigurationConflictError` and `StoreUnavailableError`.
        """

    def deploy(self) -> None:
        """Give the present configuration to the functions, if they read a copy. Raises `StoreUnavailableError`."""

    def history(self) -> Iterator[Change]:
        """All changes, the newest first, read as they are taken."""


class CachedConfiguration:
    """The configuration of one execution environment. Its threads share it.

    One read serves all uses of `lasts`. If a read fails, the last known values hold, and the next read is made
    `lasts` after the failure: a read that hangs takes longer than that itself. After `STALE_AFTER` they are marked as
    stale. Before the first successful read, nothing is set, and that is stale.
    """

    def __init__(
        self,
        read: Callable[[], RuntimeConfiguration],
        *,
        clock: Clock,
        failed: Callable[[Exception], None],
        lasts: timedelta = CACHED_FOR,
    ) -> None:
        self._read = read
        self._lasts = lasts
        self._clock = clock
        self._failed = failed
        self._reading = threading.Lock()
        self._known = NOTHING_SET
        #: The begin of the last read, or its end if it failed.
        self._read_at: datetime | None = None
        #: The time of the last successful read.
        self._known_at: datetime | None = None

    def current(self) -> RuntimeConfiguration:
        """At most `lasts` old, and the time of a read; older only if reads fail."""
        if self._fresh():
            return self._known
        with self._reading:
            # Another thread may have read it while this one waited.
            if not self._fresh():
                self._read_again()
            return self._known

    @property
    def confirmed(self) -> bool:
        """Whether the last read succeeded, so that `current` is not older than it says."""
        return self._known_at is not None and self._known_at == self._read_at

    def _fresh(self) -> bool:
        return self._read_at is not None and is_within(self._lasts, since=self._read_at, now=self._clock())

    def _read_again(self) -> None:
        began = self._clock()
        try:
            self._known, self._known_at = self._read(), began
            self._read_at = began
        except Exception as error:  # noqa: BLE001 - a wrong document or a denied read must not stop the jobs
            self._failed(error)
            self._read_at = self._clock()
            if self._known_at is None or not is_within(STALE_AFTER, since=self._known_at, now=self._read_at):
                self._known = replace(self._known, stale=True)


class Configurator:
    """Changes the configuration for an operator. Each change is conditional on the version that was read."""

    def __init__(self, *, store: ConfigurationStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def read(self, *, expected: int | None = None) -> RuntimeConfiguration:
        """The present configuration. Raises `ConfigurationConflictError` if it does not have the version `expected`."""
        present = self._store.read(consistent=True)
        if expected is not None and present.version != expected:
            raise ConfigurationConflictError(
                f"the runtime configuration has version {present.version}, not {expected}: nothing was changed"
            )
        return present

    def acting(self) -> RuntimeConfiguration:
        """What the functions read. Raises `StoreUnavailableError`."""
        return self._store.acting()

    def deploy(self) -> None:
        """Give the functions what a change wrote before it failed. Raises `StoreUnavailableError`."""
        self._store.deploy()

    def history(self) -> Iterator[Change]:
        return self._store.history()

    def set(
        self,
        present: RuntimeConfiguration,
        name: str,
        value: Any,
        *,
        by: str,
        reason: str,
        until: datetime | None = None,
    ) -> RuntimeConfiguration:
        """Set a setting. Raises `InvalidSettingError` and `ConfigurationConflictError`."""
        now = self._clock()
        setting = Setting(name=name, value=value, at=now, by=by, reason=reason, until=until)
        changed = RuntimeConfiguration(version=present.version + 1, document=present.with_setting(setting))
        self._store.write(
            changed,
            Change(version=changed.version, name=name, value=value, at=now, by=by, reason=reason, until=until),
            drain_of(setting, ends_at=until or now),
        )
        return changed

    def remove(
        self, present: RuntimeConfiguration, name: str, *, by: str, reason: str, drain_rate: Rate | None = None
    ) -> RuntimeConfiguration:
        """Remove a setting. Raises as `set`. After a pause, `drain_rate` counts instead of its own rate."""
        now = self._clock()
        changed = RuntimeConfiguration(version=present.version + 1, document=present.without_setting(name, now=now))
        removed = present.settings.get(name)
        drain = drain_of(removed, ends_at=now) if removed else None
        self._store.write(
            changed,
            Change(version=changed.version, name=name, value=None, removed=True, at=now, by=by, reason=reason),
            replace(drain, rate=drain_rate) if drain and drain_rate else drain,
        )
        return changed
