"""A resource as a stack's template declares it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What is compared. A repair restores the kinds in this order: a mapping reads the stream of a table."""

    TABLE = "table"
    QUEUE = "queue"
    POLICY = "queue policy"
    ALARM = "alarm"
    MAPPING = "event source mapping"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class LatestStream:
    """The ARN of a table's stream. DynamoDB gives each enabled stream a new one."""

    table: str

    def __str__(self) -> str:
        return f"the latest stream of {self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One resource."""

    kind: Kind
    logical_id: str
    #: The UUID of a mapping, the URL of a queue, otherwise the name. None if the stack does not list the resource.
    physical_id: str | None
    #: The group of a schedule.
    group: str = ""
    #: The function that a mapping or schedule calls, by its key in `names.Output.FUNCTIONS`: `publish`, `work-bulk`.
    function: str = ""
    #: What tells the schedules of one function apart: the periodic type, or the part of wake. May be empty.
    detail: str = ""
    #: The values that are compared, by the name that the comparison of this kind gives them.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Why the template does not say the settings. Empty if it does.
    unreadable: str = ""

    @property
    def label(self) -> str:
        if self.function:
            return f"{self.function} {self.detail}".strip()
        return (self.physical_id or self.logical_id).rpartition("/")[2]

    @property
    def enabled(self) -> bool:
        """Whether a mapping or schedule calls its function."""
        return self.settings.get("Enabled", True) is not False and self.settings.get("State", "ENABLED") == "ENABLED"
