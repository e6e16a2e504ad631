"""The runtime configuration: settings that operators change while the app runs. Pure.

One JSON document holds all settings by name. Each has its value, who set it, when and why, and an optional end. A
version of the code reads the settings that it knows, and keeps all others as they are.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from msgspec import Struct

from tidemill.domain.admission.governor import GOVERNOR_SETTING, switched_off
from tidemill.domain.admission.quotas import DEFAULT_QUOTA, Quota
from tidemill.domain.admission.strain import LEVEL_SETTING, NO_STRAIN, level_of
from tidemill.domain.breakers.breaker_settings import forced_state
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.job import Job
from tidemill.domain.limits.caps import DEFAULT_CAP, LARGEST_CAP, cap_value, weight_value, weighted
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.overrides import (
    SHARED_LIMIT_PREFIX,
    TYPE_PREFIX,
    Override,
    acting,
    check_limit,
    check_type,
    override_of,
)
from tidemill.domain.operations.setting import Setting, decoded
from tidemill.domain.operations.type_overrides import TypeOverrides
from tidemill.domain.records import replace
from tidemill.domain.waiting.pauses import ACTS_WITHIN, LATEST_CALL, Drain, Pause, Scope, Target, first_time, options_of
from tidemill.domain.waiting.waiting import Line
from tidemill.names import Lane

_Value = TypeVar("_Value")

#: A flag is for the code of the app. The engine does not read it.
FLAG_PREFIX: Final = "flags."
#: A pause. The name of its target follows, and its value has the options.
PAUSE_PREFIX: Final = "pauses."
#: A breaker that an operator forces open or closed. The name of its downstream follows.
BREAKER_PREFIX: Final = "breakers."
#: How many jobs a tenant may submit in a period: `quotas.TENANT`, or `quotas.default` for all others.
QUOTA_PREFIX: Final = "quotas."
#: How many jobs of a tenant run at once in each lane: `caps.TENANT`, or `caps.default` for all others.
CAP_PREFIX: Final = "caps."
#: What the default cap is multiplied by for a tenant.
WEIGHT_PREFIX: Final = "weights."
_FLAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
#: In bytes of JSON. Each execution environment that is at work reads the document every few seconds.
LARGEST_DOCUMENT: Final = 32 * 1024
_SETTINGS: Final = "settings"
#: A list of the pauses of schedules that have ended or were replaced. A late call may have a time that fell into one.
_PAST_PAUSES: Final = "past_pauses"
#: So that they leave room for the settings: they take a third of the largest document. The oldest goes first.
_MOST_PAST_PAUSES: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfiguration:
    """The settings as they were read."""

    #: Counts the changes; 0 before the first.
    version: int = 0
    #: The stored document. It may hold members that only a newer version of the code knows.
    document: Mapping[str, Any] = field(default_factory=dict)
    #: It was never read, or so long ago that wake may have forgotten the line of a pause which has ended since.
    stale: bool = False
    #: A change reaches each function within this time.
    acts_within: timedelta = ACTS_WITHIN
    #: Those that this version can read, by name, also if their end has passed.
    settings: Mapping[str, Setting] = field(init=False, default_factory=dict)
    #: Those among them, also if their end has passed.
    _pauses: Sequence[Pause] = field(init=False, default=())
    #: Those, and those of schedules that have ended or were replaced.
    _present_and_past: Sequence[Pause] = field(init=False, default=())
    #: The overrides, also if their end has passed.
    _overrides: Sequence[Override] = field(init=False, default=())
    #: Likewise, by tenant.
    _quotas: Mapping[str, tuple[Setting, Quota]] = field(init=False, default_factory=dict)
    _caps: Mapping[str, tuple[Setting, int | None]] = field(init=False, default_factory=dict)
    _weights: Mapping[str, tuple[Setting, float]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", _settings(self.document))
        pauses = filter(None, map(_pause, self.settings.values()))
        object.__setattr__(self, "_pauses", sorted(pauses, key=lambda pause: pause.order))
        past = filter(None, map(_pause, _past_pauses(self.document)))
        known = sorted((*self._pauses, *past), key=lambda pause: pause.order)
        object.__setattr__(self, "_present_and_past", known)
        overrides = filter(None, map(override_of, self.settings.values()))
        object.__setattr__(self, "_overrides", tuple(overrides))
        object.__setattr__(self, "_quotas", _by_tenant(self.settings, QUOTA_PREFIX, Quota.parse))
        object.__setattr__(self, "_caps", _by_tenant(self.settings, CAP_PREFIX, cap_value))
        object.__setattr__(self, "_weights", _by_tenant(self.settings, WEIGHT_PREFIX, weight_value))

    def flags(self, now: datetime) -> dict[str, Any]:
        """Copies of the values of the flags in force, by the name that the app gave them: a handler may change them."""
        return {
            name.removeprefix(FLAG_PREFIX): deepcopy(setting.value)
            for name, setting in self.settings.items()
            if name.startswith(FLAG_PREFIX) and setting.in_force(now)
        }

    def pauses(self, now: datetime) -> list[Pause]:
        """Those in force."""
        return [pause for pause in self._pauses if pause.until is None or now < pause.until]

    def pause_of(self, job: Job, *, now: datetime) -> Pause | None:
        """The first pause in force that covers the job, except one of its limit key."""
        return next((pause for pause in self.pauses(now) if pause.target.covers(job)), None)

    def pause_of_schedule(self, type_: str, lane: Lane, *, scheduled: datetime) -> Pause | None:
        """The first pause that stops the schedule of this type, or each of its jobs, at this time.

        It may have ended since.
        """
        stops = self._pauses_of_schedule(type_, lane)
        return next((pause for pause in stops if pause.holds(scheduled, acts_within=self.acts_within)), None)

    def schedule_paused_since(self, type_: str, lane: Lane, *, scheduled: datetime) -> datetime:
        """When the first of the pauses began that have stopped the schedule of this type without a gap to this time."""
        stops = self._pauses_of_schedule(type_, lane)
        return first_time(stops, scheduled, acts_within=self.acts_within) - self.acts_within

    def _pauses_of_schedule(self, type_: str, lane: Lane) -> list[Pause]:
        return [pause for pause in self._present_and_past if pause.target.stops_schedule(type_, lane)]

    def pause_of_line(self, line: Line, *, now: datetime) -> Pause | None:
        """The pause in force whose jobs wait in this line."""
        return next((pause for pause in self.pauses(now) if pause.target.line == line), None)

    def pause_of_limit(self, line: Line, *, now: datetime) -> Pause | None:
        """The pause in force of the limit key with this line."""
        named = Target(scope=Scope.LIMIT, name=line.key)
        return next((pause for pause in self.pauses(now) if pause.target == named), None)

    def strain(self, now: datetime) -> Setting | None:
        """The level of strain that an operator has set, if that is in force."""
        setting = self.settings.get(LEVEL_SETTING)
        return setting if setting and setting.in_force(now) and _level(setting) else None

    def strain_level(self, now: datetime) -> int:
        """0 for a level that only a newer version can read."""
        setting = self.strain(now)
        return _level(setting) if setting else NO_STRAIN

    def governor_is_off(self, now: datetime) -> bool:
        """False for a value that only a newer version can read."""
        setting = self.settings.get(GOVERNOR_SETTING)
        with suppress(InvalidSettingError):
            return setting is not None and setting.in_force(now) and switched_off(setting.value)
        return False

    def overrides(self, now: datetime) -> list[Override]:
        """Those in force, of all types and shared limits."""
        return [override for override in self._overrides if override.setting.in_force(now)]

    def overrides_of(self, type_: str, *, shares: str | None = None, now: datetime) -> TypeOverrides:
        """Those in force for the jobs of this type, which has the shared limit of that name."""
        return acting(self._overrides, type_, shares=shares, now=now)

    def limit_of(self, line: Line, declared: Limit | None, *, last: str | None, now: datetime) -> Limit | None:
        """The limit in force in this line, whose item or type says `declared`. `last` is the tenant of its last job."""
        if (tenant := line.capped_tenant(last)) is None:
            key = line.limit_key
            return acting(self._overrides, key.type, shares=key.shared, now=now).limit(declared) if key else declared
        if self.stale:
            return declared
        # After a cap was removed, those that still wait for it come in order.
        return Limit(concurrency=self.cap_of(tenant, now=now) or LARGEST_CAP)

    def forced_breaker(self, name: str, *, now: datetime) -> Setting | None:
        """The setting in force that forces this breaker open or closed, if this version can read it."""
        setting = self.settings.get(BREAKER_PREFIX + name)
        if setting is None or not setting.in_force(now):
            return None
        try:
            forced_state(name, setting.value)
        except InvalidSettingError:
            return None
        return setting

    def forced_breakers(self, now: datetime) -> dict[str, Setting]:
        """Those in force, by the name of the breaker."""
        names = [name.removeprefix(BREAKER_PREFIX) for name in self.settings if name.startswith(BREAKER_PREFIX)]
        forced = {name: self.forced_breaker(name, now=now) for name in sorted(names)}
        return {name: setting for name, setting in forced.items() if setting}

    def quota_of(self, tenant: str, *, now: datetime) -> Quota | None:
        """The quota in force for the tenant: its own, or else the default one."""
        own, default = self._quotas.get(tenant), self._quotas.get(DEFAULT_QUOTA)
        quotas = (entry for entry in (own, default) if entry and entry[0].in_force(now))
        return next((quota for _, quota in quotas), None)

    def cap_of(self, tenant: str, *, now: datetime) -> int | None:
        """How many jobs of the tenant may run at once in each lane; None for no bound.

        Its own cap, or else the default one times its weight.
        """
        if (own := self._caps.get(tenant)) and own[0].in_force(now):
            return own[1]
        default = self._caps.get(DEFAULT_CAP)
        if default is None or not default[0].in_force(now) or default[1] is None:
            return None
        weight = self._weights.get(tenant)
        return weighted(default[1], weight[1]) if weight and weight[0].in_force(now) else default[1]

    def with_setting(self, setting: Setting) -> Mapping[str, Any]:
        """The document with this setting, and without those whose end has passed.

        Raises `InvalidSettingError` if this version does not know such a setting, or refuses its value.
        """
        check(setting)
        entries = {**self._entries_in_force(setting.at), setting.name: setting.encoded()}
        document = {**self.document, **self._past(setting.name, setting.at), _SETTINGS: entries}
        try:
            size = len(json.dumps(document, allow_nan=False))
        except ValueError as error:
            raise InvalidSettingError(f"the value of {setting.name!r} is not JSON: {error}") from error
        if size > LARGEST_DOCUMENT:
            raise InvalidSettingError(
                f"the runtime configuration would have {size} bytes, and {LARGEST_DOCUMENT} is the limit: "
                "remove settings that are not needed"
            )
        return document

    def without_setting(self, name: str, *, now: datetime) -> Mapping[str, Any]:
        """The document without this setting, which a newer version may have made, and without those that have ended.

        Raises `InvalidSettingError` for an absent one.
        """
        entries = self._entries_in_force(now)
        if name not in entries:
            raise InvalidSettingError(f"no setting {name!r} is in force")
        entries.pop(name)
        return {**self.document, **self._past(name, now), _SETTINGS: entries}

    def _past(self, name: str, now: datetime) -> dict[str, Any]:
        """The member of the past pauses after a change of this setting. Empty if it never had one."""
        # An older pause counts as long as others follow it without a gap.
        needed = first_time(self._present_and_past, now - LATEST_CALL, acts_within=self.acts_within)
        past = [setting for setting in _past_pauses(self.document) if setting.until and needed < setting.until]
        for setting in self.settings.values():
            pause = _pause(setting)
            if pause and pause.target.stops_schedules and (setting.name == name or not setting.in_force(now)):
                # A function may use the pause until then.
                until = min(setting.until or now + self.acts_within, now + self.acts_within)
                past = _with_ended(past, replace(setting, until=until, value={}, by="", reason=""), self.acts_within)
        entries = [{"name": setting.name, **setting.encoded()} for setting in past[-_MOST_PAST_PAUSES:]]
        return {_PAST_PAUSES: entries} if entries or _PAST_PAUSES in self.document else {}

    def _entries_in_force(self, now: datetime) -> dict[str, Any]:
        def ended(name: str) -> bool:
            return name in self.settings and not self.settings[name].in_force(now)

        return {name: entry for name, entry in _entries(self.document).items() if not ended(name)}


class Change(Struct, frozen=True, kw_only=True):
    """One change of the configuration, for its history."""

    #: The version that it made.
    version: int
    name: str
    at: datetime
    by: str
    reason: str
    #: JSON. None for a setting that was removed, which `removed` tells from a null.
    value: Any
    removed: bool = False
    until: datetime | None = None


def check(setting: Setting) -> None:
    """Raises `InvalidSettingError` if this version of the code does not know such a setting, or refuses its value."""
    if prefix := next((prefix for prefix in _CHECKS if setting.name.startswith(prefix)), None):
        _CHECKS[prefix](setting.name.removeprefix(prefix), setting.value)
    elif setting.name == LEVEL_SETTING:
        level_of(setting.value)
    elif setting.name == GOVERNOR_SETTING:
        switched_off(setting.value)
    else:
        *prefixes, last = _CHECKS
        begins, names = f"{', '.join(prefixes)} or {last}", f"{LEVEL_SETTING} or {GOVERNOR_SETTING}"
        raise InvalidSettingError(f"unknown setting {setting.name!r}: a name begins with {begins}, or is {names}")
    if setting.until is not None and setting.until <= setting.at:
        raise InvalidSettingError(f"the end {setting.until.isoformat()} has passed already")


def _check_flag(name: str, _value: Any) -> None:
    if not _FLAG.fullmatch(name):
        raise InvalidSettingError(
            f"invalid name {FLAG_PREFIX + name!r}: after {FLAG_PREFIX}, use 1 to 100 of A-Z, a-z, 0-9, '.', '_' and "
            "'-', and begin with one of A-Z, a-z and 0-9"
        )


def _check_pause(name: str, value: Any) -> None:
    Target.parse(name)
    options_of(value)


#: By the prefix of the name. Each gets the rest of the name, and the value.
_CHECKS: Final[Mapping[str, Callable[[str, Any], object]]] = {
    FLAG_PREFIX: _check_flag,
    PAUSE_PREFIX: _check_pause,
    TYPE_PREFIX: check_type,
    SHARED_LIMIT_PREFIX: check_limit,
    BREAKER_PREFIX: forced_state,
    QUOTA_PREFIX: Quota.parse,
    CAP_PREFIX: cap_value,
    WEIGHT_PREFIX: weight_value,
}


def _with_ended(past: Sequence[Setting], ended: Setting, acts_within: timedelta) -> list[Setting]:
    """The past pauses with this one. If it extended one of them, the two are one, as they are for `first_time`."""
    extends = [one for one in past if one.name == ended.name and one.until and ended.at + acts_within <= one.until]
    whole = [ended, *extends]
    until = max(one.until for one in whole if one.until)
    return [*(one for one in past if one not in extends), replace(ended, at=min(one.at for one in whole), until=until)]


def drain_of(setting: Setting, *, ends_at: datetime) -> Drain | None:
    """How the line of this pause empties. None for another setting, and for a pause of a newer version."""
    pause = _pause(setting)
    return Drain(line=pause.target.line, rate=pause.rate, ends_at=ends_at) if pause else None


def _pause(setting: Setting) -> Pause | None:
    """None for another setting, and for a pause that only a newer version can read."""
    if not setting.name.startswith(PAUSE_PREFIX):
        return None
    try:
        return Pause(
            target=Target.parse(setting.name.removeprefix(PAUSE_PREFIX)),
            since=setting.at,
            until=setting.until,
            by=setting.by,
            reason=setting.reason,
            **options_of(setting.value),
        )
    except InvalidSettingError:
        return None


def _by_tenant(
    settings: Mapping[str, Setting], prefix: str, parse: Callable[[str, Any], _Value]
) -> dict[str, tuple[Setting, _Value]]:
    """Without those that only a newer version can read."""
    found: dict[str, tuple[Setting, _Value]] = {}
    for name, setting in settings.items():
        if name.startswith(prefix):
            tenant = name.removeprefix(prefix)
            with suppress(InvalidSettingError):
                found[tenant] = (setting, parse(tenant, setting.value))
    return found


def _level(setting: Setting) -> int:
    try:
        return level_of(setting.value)
    except InvalidSettingError:
        return NO_STRAIN


def _entries(document: Mapping[str, Any]) -> Mapping[str, Any]:
    entries = document.get(_SETTINGS, {})
    return entries if isinstance(entries, dict) else {}


def _settings(document: Mapping[str, Any]) -> dict[str, Setting]:
    return {name: setting for name, entry in _entries(document).items() if (setting := decoded(name, entry))}


def _past_pauses(document: Mapping[str, Any]) -> list[Setting]:
    entries = document.get(_PAST_PAUSES)
    named = (
        [(entry.get("name"), entry) for entry in entries if isinstance(entry, dict)]
        if isinstance(entries, list)
        else []
    )
    return [setting for name, entry in named if isinstance(name, str) and (setting := decoded(name, entry))]


NOTHING_SET: Final = RuntimeConfiguration()
