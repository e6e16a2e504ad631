"""The promises while two versions of the code run at once: what the older one may do with what the newer one made."""

import json
from collections.abc import Iterator
from typing import Final

from tests.simulation.checks.violation import Item, Violation, number_of, require, state_of, tenant_of, text_of
from tests.simulation.world.code_versions import MARK, PRESENT, Code, job_type
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.domain.errors import InvalidPayloadError, UnknownJobTypeError
from tidemill.domain.job import DeathReason
from tidemill.domain.states import TERMINAL

#: How long publish must have tried at least before it gives a record up, less what clocks may differ by.
_RECORD_TRIED_FOR_MS: Final = 4 * 60_000
#: What an attempt fails with whose worker does not know the type, or refuses the payload.
_OTHER_VERSION_ERRORS: Final = frozenset({UnknownJobTypeError.__name__, InvalidPayloadError.__name__})


class VersionCompatibilityChecks:
    """Watches one world's jobs table, and looks at the end."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.jobs.watchers.append(self._changed)

    def _changed(self, record: Record) -> None:
        before, after = record.before, record.after
        if not before or not after or "state" not in before or before["created_at"] != after["created_at"]:
            return
        key = record.keys["pk"]["S"]
        try:
            told = f"schema {number_of(before, 'schema')} became {number_of(after, 'schema')}"
            kept = number_of(after, "schema") >= number_of(before, "schema")
            require(kept, "nobody writes over what they cannot read", told, key)
            run = text_of(before, "owner") and text_of(before, "owner") == text_of(after, "owner")
            own = not run or number_of(after, "schema") == number_of(before, "schema")
            require(own, "a run can read its own document", told, key)
            require(MARK in after or MARK not in before, "what is not known is kept", f"{MARK} is gone", key)
            _require_policy(key, after)
        except Violation as violation:
            self._world.scheduler.fail(violation)

    def at_end(self) -> None:
        self._no_attempt_is_lost_to_another_version()
        self._publish_waits_for_the_newer_version()

    def _no_attempt_is_lost_to_another_version(self) -> None:
        """A type that is not known fails only where the version that stays does not know it."""
        for key, item in self._jobs():
            for error in item.get("errors", {"L": []})["L"]:
                name = error["M"]["error_class"]["S"]
                if name in _OTHER_VERSION_ERRORS:
                    for_good = any(_refuses(code, item) for code in self._world.rollout.final_versions)
                    require(for_good, "no attempt is used up by the other version", f"{name}, by a worker", key)

    def _publish_waits_for_the_newer_version(self) -> None:
        written_ms = {record.sequence: record.at_ms for shard in self._world.jobs.shards for record in shard}
        for at_ms, sequence in self._world.passed_over:
            tried_ms = at_ms - written_ms[sequence]
            what = f"the record {sequence} was given up after {tried_ms // 1000} s"
            require(tried_ms >= _RECORD_TRIED_FOR_MS, "publish waits for the newer version", what, "*")

    def rolled_back_at_rest(self) -> bool:
        """Nothing is left that this version can bring about where documents of the next have stayed behind."""
        world = self._world
        if world.stream.behind or any(queue.messages for queue in world.lanes.values()):
            return False
        return not [*self._left_behind()] and not [*self._unreported()]

    def at_end_of_rollback(self) -> None:
        """After a rollback for good. Raises `Violation`."""
        for key in self._left_behind():
            require(holds=False, check="what can be read ends", what="it waits, and nothing keeps it", about=key)
        for key in self._unreported():
            require(holds=False, check="what nobody can read is told of", what="nobody was told", about=key)

    def _left_behind(self) -> Iterator[str]:
        """Jobs that have not ended although this version can read them, and all of their group."""
        jobs = list(self._jobs())
        kept = {_group(key, item) for key, item in jobs if _newer(item)} - {None}
        for key, item in jobs:
            if state_of(item) not in TERMINAL and not _newer(item) and _group(key, item) not in kept:
                yield key

    def _unreported(self) -> Iterator[str]:
        """Live jobs, or such as have a time, of which reconcile has not said that it cannot read them."""
        for key, item in self._jobs():
            if "due" in item and _newer(item) and key not in self._world.unreadable:
                yield key

    def _jobs(self) -> Iterator[tuple[str, Item]]:
        return ((key[0], item) for key, item in self._world.jobs.items.items() if "state" in item)


def _require_policy(key: str, item: Item) -> None:
    """What a job dies of is what its own type says, and not what somebody thinks who does not know the type."""
    over = number_of(item, "attempt") - job_type(text_of(item, "type")).retry.max_attempts
    least = {DeathReason.EXHAUSTED.value: 0, DeathReason.CRASHED.value: 1}.get(text_of(item, "death"), over)
    require(over >= least, "deaths follow the policy", f"{text_of(item, 'death')}, attempts left: {-over}", key)


def _newer(item: Item) -> bool:
    return number_of(item, "schema") > PRESENT.document_schema


def _group(key: str, item: Item) -> tuple[str, str] | None:
    return (tenant_of(key), text_of(item, "group")) if "group" in item else None


def _refuses(code: Code, item: Item) -> bool:
    """Whether a worker of that version cannot run the job."""
    try:
        # A large payload is elsewhere, and nothing fits the one model that was changed.
        code.job_types.get(text_of(item, "type")).parse(json.loads(text_of(item, "payload") or "{}"))
    except (InvalidPayloadError, UnknownJobTypeError):
        return True
    return False
