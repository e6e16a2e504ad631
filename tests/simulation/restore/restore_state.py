"""What happened in one restore, for its checks and its figures. Times in milliseconds."""

from dataclasses import dataclass, field
from typing import Any

from tests.simulation.checks.violation import Violation
from tests.simulation.world.dynamodb_table import Table
from tests.simulation.world.world import World


@dataclass
class Restore:
    """What a scenario has done so far."""

    world: World
    restored_to_ms: int = 0
    #: The items of the restore point, by key.
    point: dict[Any, Any] = field(default_factory=dict)
    restored: Table | None = None
    recovery_began_ms: int = 0
    epoch: int = 0
    deployed_ms: int = 0
    #: The report of the call that came to an end, by the key of each job.
    report: dict[str, Any] = field(default_factory=dict)
    #: The processes that claimed restored jobs, and the first claim of each job.
    new_processes: set[str] = field(default_factory=set)
    first_claims_ms: dict[str, int] = field(default_factory=dict)
    #: By process and job, the latest epoch of the messages of its present invocation.
    epochs: dict[str, dict[str, int]] = field(default_factory=dict)
    #: By tenant and name, the groups whose head cannot be read at the restore point.
    unreadable_groups: set[str] = field(default_factory=set)
    #: The jobs that an operator deleted from the former table.
    damaged: set[str] = field(default_factory=set)

    @property
    def table(self) -> Table:
        assert self.restored is not None
        return self.restored


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one seed."""

    seed: int
    violation: Violation | None
    story: str
    #: The time from the incident back to the restore point, and from there to the first run of the last restored job.
    point_ms: int = 0
    recovery_ms: int = 0
    restored: int = 0
    may_run_again: int = 0
    ran_again: int = 0
    missing: int = 0
