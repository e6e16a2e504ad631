"""What must hold after a restore: no job of the restore point is lost, and each that runs again is reported."""

import json
from math import inf
from typing import Any, Final

from tests.simulation.checks.violation import Violation
from tests.simulation.restore.restore_state import Restore, Result
from tidemill.application.restore.recover import Fate
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict

_FINAL: Final = frozenset({"succeeded", "cancelled", "expired"})
_ENDED: Final = _FINAL | {"dead"}


def check(restore: Restore, seed: int) -> Result:
    """Raises `Violation`."""
    jobs = {key: item for (key,), item in restore.point.items() if "state" in item}
    live = {key for key, item in jobs.items() if _state(item) not in _ENDED}
    for key, item in jobs.items():
        _kept(restore, key, item)
    for group in restore.unreadable_groups:
        found = restore.report.get(group)
        named = found is not None and found.fate is Fate.UNREADABLE
        _require(named, "a group whose head cannot be read is reported", "it is not", group)
    for key in live:
        _ended_in_time(restore, key)
    ran_before = _ran_in_former_table(restore, jobs)
    ran_again = {key for key in ran_before if key in restore.first_claims_ms}
    for key in ran_again:
        _require(_reported(restore, key), "each job that runs again is reported", "it is not", key)
    for key in jobs:
        _effects(restore, key)
    _missing(restore, jobs)
    _messages(restore)
    at_once = [key for key in live if _state(jobs[key]) == "running" or _due_ms(jobs[key]) <= restore.recovery_began_ms]
    starts = [restore.first_claims_ms[key] for key in at_once if key in restore.first_claims_ms]
    return Result(
        seed=seed,
        violation=None,
        story="",
        point_ms=restore.recovery_began_ms - restore.restored_to_ms,
        recovery_ms=max(starts, default=restore.deployed_ms) - restore.recovery_began_ms,
        restored=len(jobs),
        may_run_again=sum(each.may_run_again for each in restore.report.values()),
        ran_again=len(ran_again),
        missing=sum(each.fate is Fate.MISSING for each in restore.report.values()),
    )


def _kept(restore: Restore, key: str, before: Any) -> None:
    after = restore.table.items.get((key,))
    _require(after is not None, "no job of the restore point is lost", "it has no document", key)
    if after and _state(before) in _FINAL:
        _require(after == before, "an ended job stays as it was restored", f"{before} -> {after}", key)
    _require(
        _state(before) in _FINAL or key in restore.report,
        "each job of the restore point is accounted for",
        "the report does not name it",
        key,
    )


def _ended_in_time(restore: Restore, key: str) -> None:
    """Without reconcile, whose limit is longer: the recovery itself sends every message."""
    state = _state(restore.table.items.get((key,), {}))
    _require(state in _ENDED, "a restored job ends without reconcile", f"it is {state}", key)


def _ran_in_former_table(restore: Restore, jobs: dict[str, Any]) -> set[str]:
    """The jobs whose handler ran for the former table after the restore point."""
    return {
        run.key
        for run in restore.world.runs
        if run.key in jobs
        and run.by not in restore.new_processes
        and (run.ended_ms is None or run.ended_ms > restore.restored_to_ms)
    }


def _effects(restore: Restore, key: str) -> None:
    item = restore.world.effects.items.get((key,))
    number = int(item["count"]["N"]) if item else 0
    most = 2 if _reported(restore, key) else 1
    _require(number <= most, "effects are doubled for reported jobs only", f"{number} effects", key)


def _missing(restore: Restore, jobs: dict[str, Any]) -> None:
    """The report names each job that was accepted after the restore point, before anything changed over."""
    for (key,), item in restore.world.jobs.items.items():
        if "state" not in item or key in jobs or int(item["created_at"]["N"]) > restore.recovery_began_ms:
            continue
        found = restore.report.get(key)
        named = found is not None and found.fate is Fate.MISSING
        _require(named, "each job that was accepted after the restore point is reported", "it is not", key)


def _messages(restore: Restore) -> None:
    """Each message is about the table of its worker, and each job that is dead at rest has a message of its epoch."""
    for reference, report in restore.world.reports_by_message:
        about = f"{reference.tenant}#{reference.job_id}" if reference else "*"
        refused = report.verdict in {ClaimVerdict.AHEAD, ClaimVerdict.GONE} and report.error is None
        _require(not refused or about in restore.damaged, "each message has its document", str(report.verdict), about)
    letters = {
        (body["tenant"], body["id"], body["generation"])
        for queue in restore.world.dead_letters.values()
        for message in queue.messages
        for body in [json.loads(message.body)]
        if body.get("epoch") == 1
    }
    for (key,), item in restore.table.items.items():
        if _state(item) == "dead":
            tenant, _, job_id = key.rpartition("#")
            named = (tenant, job_id, int(item["generation"]["N"])) in letters
            _require(named, "each dead job of a restored table has a DLQ message of its epoch", "it has none", key)


def _reported(restore: Restore, key: str) -> bool:
    found = restore.report.get(key)
    return found is not None and found.may_run_again


def _due_ms(item: Any) -> float:
    """Waiting jobs have no time of their own."""
    return int(item["due"]["N"]) if "due" in item else inf


def _state(item: Any) -> str:
    return str(item.get("state", {}).get("S", ""))


def _require(holds: object, title: str, detail: str, about: str) -> None:
    if not holds:
        raise Violation(title, detail, about)
