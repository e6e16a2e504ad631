"""Watches who claims restored jobs, and from messages of which epoch."""

import json
from typing import Any

from tests.simulation.checks.violation import Violation
from tests.simulation.restore.restore_state import Restore
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.lambda_environments import Function


def changed(restore: Restore, record: Record) -> None:
    task = restore.world.scheduler.current
    by = task.process if task else None
    before, after = record.before or {}, record.after or {}
    key = record.keys["pk"]["S"]
    restore.world.log(by.name if by else "DynamoDB", f"restored {key}: {_short(before)} -> {_short(after)}")
    if by and after.get("owner") and after.get("owner") != before.get("owner"):
        restore.new_processes.add(by.name)
        restore.first_claims_ms.setdefault(key, record.at_ms)
        if restore.epochs.get(by.name, {}).get(key, 1) != 1:
            what = f"{by.name} claims it from a message of the former table"
            restore.world.scheduler.fail(Violation("no message from before a restore starts a job", what, key))


def note_messages(restore: Restore, worker: Function) -> None:
    handle = worker.handler

    def noting(event: Any, context: Any) -> Any:
        task = restore.world.scheduler.current
        epochs: dict[str, int] = {}
        for record in event["Records"]:
            body = json.loads(record["body"])
            key = f"{body['tenant']}#{body['id']}"
            epochs[key] = max(epochs.get(key, 0), body.get("epoch", 0))
        if task:
            restore.epochs[task.process.name] = epochs
        return handle(event, context)

    worker.handler = noting


def _short(item: Any) -> str:
    return f"{item.get('state', {}).get('S', '-')} g{item.get('generation', {}).get('N', '-')}"
