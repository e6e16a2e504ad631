"""Runtime configurations with the settings that a test names."""

import json
from typing import Any, Final

from tests.support.builders import NOW
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace

A_FLAG: Final = Setting(name="flags.colour", value="blue", at=NOW, by="arn:ops", reason="a test")


def configured(*settings: Setting, **document: Any) -> RuntimeConfiguration:
    """Return the configuration as read back after each of these changes of `document`."""
    made = RuntimeConfiguration(document=document)
    for setting in settings:
        made = RuntimeConfiguration(document=json.loads(json.dumps(made.with_setting(setting))))
    return made


def paused(target: str, **changes: Any) -> Setting:
    setting = Setting(name=f"pauses.{target}", value={}, at=NOW, by="arn:ops", reason="why")
    return replace(setting, **changes)


def overridden(name: str, value: Any, **changes: Any) -> Setting:
    setting = Setting(name=f"types.{name}", value=value, at=NOW, by="arn:ops", reason="why")
    return replace(setting, **changes)


def shared(name: str, value: Any, **changes: Any) -> Setting:
    """An override of a shared limit."""
    return replace(overridden(name, value, **changes), name=f"limits.{name}")


def strained(level: int, **changes: Any) -> Setting:
    setting = Setting(name="strain.level", value=level, at=NOW, by="arn:ops", reason="why")
    return replace(setting, **changes)


def capped(name: str, value: Any, **changes: Any) -> Setting:
    """A cap or a weight."""
    setting = Setting(name=name, value=value, at=NOW, by="arn:ops", reason="why")
    return replace(setting, **changes)
