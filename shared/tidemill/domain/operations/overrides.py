"""The overrides of job types and of shared limits, as settings hold them, and which of them act on a job. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.operations.setting import Setting
from tidemill.domain.operations.type_overrides import LIMIT_OPTIONS, NO_OVERRIDES, Overridden, TypeOverrides

#: An override of an option of a job type, such as `types.mail.welcome.max_attempts`.
TYPE_PREFIX: Final = "types."
#: An override of a shared limit, such as `limits.payments.concurrency_per_key`.
SHARED_LIMIT_PREFIX: Final = "limits."


class Override(Struct, frozen=True, kw_only=True):
    """One override with its record."""

    overridden: Overridden
    setting: Setting
    #: The keyword argument of `TypeOverrides`.
    argument: Mapping[str, Any]

    def acts_on(self, type_: str | None, *, shares: str | None) -> bool:
        """Whether it counts for the jobs of this type, with the shared limit of this name if it has one.

        A shared limit belongs to no type, so an override of the limit of a type does not act on it.
        """
        if self.overridden.limit is not None:
            return self.overridden.limit == shares
        return self.overridden.type == type_ and not (shares is not None and self.overridden.option in LIMIT_OPTIONS)


def override_of(setting: Setting) -> Override | None:
    """None for another setting, and for an override that only a newer version can read."""
    try:
        if setting.name.startswith(TYPE_PREFIX):
            overridden = Overridden.parse(setting.name.removeprefix(TYPE_PREFIX))
        elif setting.name.startswith(SHARED_LIMIT_PREFIX):
            overridden = Overridden.parse_limit(setting.name.removeprefix(SHARED_LIMIT_PREFIX))
        else:
            return None
        return Override(overridden=overridden, setting=setting, argument=overridden.value(setting.value))
    except InvalidSettingError:
        return None


def check_type(name: str, value: Any) -> None:
    """Check the setting with `TYPE_PREFIX`. Raises `InvalidSettingError`."""
    Overridden.parse(name).value(value)


def check_limit(name: str, value: Any) -> None:
    """Check the setting with `SHARED_LIMIT_PREFIX`. Raises `InvalidSettingError`."""
    Overridden.parse_limit(name).value(value)


def acting(
    overrides: Iterable[Override], type_: str | None, *, shares: str | None = None, now: datetime
) -> TypeOverrides:
    """The values in force, with the arguments of `Override.acts_on`."""
    arguments: dict[str, Any] = {}
    for override in overrides:
        if override.acts_on(type_, shares=shares) and override.setting.in_force(now):
            arguments |= override.argument
    return TypeOverrides(**arguments) if arguments else NO_OVERRIDES
