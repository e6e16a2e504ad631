"""Checks for two versions of the code at once: the older version must not damage documents of the newer one."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from tests.simulation.checks.newer_documents import is_newer
from tests.simulation.checks.table_watch import watch_items, watch_jobs
from tests.simulation.checks.violation import Item, group_of, map_of, number_of, require, state_of, tenant_of, text_of
from tests.simulation.world.code_versions import MARK, Code, job_type
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.domain.errors import InvalidPayloadError, UnknownJobTypeError
from tidemill.domain.job import DeathReason
from tidemill.domain.states import TERMINAL
from tidemill.names import BATCH_TYPE, FLOW_TYPE

#: Errors of an attempt whose worker does not know the type or rejects the payload.
_OTHER_VERSION_ERRORS: Final = frozenset({UnknownJobTypeError.__name__, InvalidPayloadError.__name__})


class VersionCompatibilityChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: What `_held` returned since the last change to the jobs table. The scheduler asks at each of its steps.
        self._held_since_change: set[str] | None = None
        watch_jobs(world, changed=[partial(_require_compatible, world)])
        watch_items(world, self._forget_held)

    def at_end(self) -> None:
        self._no_attempt_is_lost_to_another_version()

    def _no_attempt_is_lost_to_another_version(self) -> None:
        """An attempt may fail for an unknown type or payload only if a final version does not know it either."""
        for key, item in self._jobs():
            for error in item.get("errors", {"L": []})["L"]:
                name = error["M"]["error_class"]["S"]
                if name in _OTHER_VERSION_ERRORS:
                    for_good = any(_refuses(code, item) for code in self._world.rollout.final_versions)
                    require(
                        for_good,
                        "no attempt is lost to a worker of another version",
                        f"a worker failed it with {name}",
                        key,
                    )

    def rolled_back_at_rest(self) -> bool:
        """After a rollback: whether this version has ended every job that it can read, and reported the others."""
        world = self._world
        if world.stream.behind:
            return False
        # The job of a batch or flow looks again and again while one of its jobs cannot end.
        looks = any(
            text_of(world.jobs.items.get((key,), {}), "type") in {BATCH_TYPE, FLOW_TYPE} for key in self._held()
        )
        sent = not looks and any(queue.messages for queue in world.lanes.values())
        return not (sent or any(self._left_behind()) or any(self._unreported()))

    def at_end_of_rollback(self) -> None:
        """Check the state after a rollback. Raises `Violation`."""
        for key in self._left_behind():
            require(
                holds=False,
                check="every readable job ends",
                what="it still waits, although this version can read it",
                about=key,
            )
        for key in self._unreported():
            require(
                holds=False,
                check="reconcile reports every unreadable job",
                what="reconcile did not report it",
                about=key,
            )

    def _left_behind(self) -> Iterator[str]:
        """Live jobs that this version must have ended."""
        held = self._held()
        for key, item in self._jobs():
            if state_of(item) not in TERMINAL and key not in held:
                yield key

    def _forget_held(self, _key: str, _change: Record) -> None:
        self._held_since_change = None

    def _held(self) -> set[str]:
        """The jobs that this version cannot read, the others of their groups, and batches and flows with such."""
        if self._held_since_change is None:
            self._held_since_change = self._found_held()
        return self._held_since_change

    def _found_held(self) -> set[str]:
        jobs = dict(self._jobs())
        groups = {_group(key, item) for key, item in jobs.items() if is_newer(item)} - {None}
        held = {key for key, item in jobs.items() if is_newer(item) or _group(key, item) in groups}
        while outer := {one for key in held for one in _outer(key, jobs.get(key, {}))} - held:
            held |= outer
        return held

    def _unreported(self) -> Iterator[str]:
        """Live jobs with a due time that this version cannot read and reconcile has not reported."""
        for key, item in self._jobs():
            if "due" in item and is_newer(item) and key not in self._world.unreadable:
                yield key

    def _jobs(self) -> Iterator[tuple[str, Item]]:
        return ((key[0], item) for key, item in self._world.jobs.items.items() if "state" in item)


def _require_compatible(world: World, key: str, before: Item, after: Item) -> None:
    what = f"schema {number_of(before, 'schema')} became {number_of(after, 'schema')}"
    kept = number_of(after, "schema") >= number_of(before, "schema")
    require(kept, "no version overwrites a newer schema", what, key)
    run = text_of(before, "owner") and text_of(before, "owner") == text_of(after, "owner")
    own = not run or number_of(after, "schema") == number_of(before, "schema")
    require(own, "a run can read its own document", what, key)
    require(MARK in after or MARK not in before, "unknown attributes are kept", f"{MARK} is gone", key)
    _require_policy(world, key, after)


def _require_policy(world: World, key: str, item: Item) -> None:
    """A job dies by the retry policy of its own type, even if a worker does not know the type."""
    type_ = text_of(item, "type")
    fewest = min([job_type(type_).retry.max_attempts, *world.overridden_attempts[type_]])
    over = number_of(item, "attempt") - fewest
    least = {DeathReason.EXHAUSTED.value: 0, DeathReason.CRASHED.value: 1}.get(text_of(item, "death"), over)
    require(over >= least, "deaths follow the policy", f"{text_of(item, 'death')}, attempts left: {-over}", key)


def _outer(key: str, item: Item) -> list[str]:
    """The jobs of its batch and of its flow."""
    ids = [text_of(item, "batch"), text_of(map_of(item, "flow"), "id")]
    return [f"{tenant_of(key)}#{each}" for each in ids if each]


def _group(key: str, item: Item) -> tuple[str, str] | None:
    return (tenant_of(key), group) if (group := group_of(item)) else None


def _refuses(code: Code, item: Item) -> bool:
    """Whether a worker of that version cannot run the job."""
    try:
        # A large payload is stored elsewhere; no payload fits both versions of the changed model.
        code.job_types.get(text_of(item, "type")).parse(text_of(item, "payload") or "{}")
    except (InvalidPayloadError, UnknownJobTypeError):
        return True
    return False
