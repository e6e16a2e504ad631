"""The state in which the two sides are compared: everything that the protocol promises, as plain values."""

import math
from collections.abc import Mapping
from typing import Any

from tests.model.model_types import ENDED, Worker
from tests.model.reference_model import Reference
from tests.model.shipped_system import ShippedSystem, since_beginning
from tests.model.workers import ShippedWorker

#: By kind and name.
View = Mapping[tuple[str, str], Any]


def of_store(shipped: ShippedSystem, shipped_workers: Mapping[int, ShippedWorker]) -> View:
    view: dict[tuple[str, str], Any] = {}
    groups: dict[str, list[tuple[int, str]]] = {}
    for item in shipped.table.items.values():
        if "state" not in item:
            continue
        held = {name: value.get("S") or value.get("N") for name, value in item.items()}
        name, state = shipped.names[item["pk"]["S"].rpartition("#")[2]], item["state"]["S"]
        view["job", name] = {
            "state": state,
            "generation": int(held["generation"]),
            "attempt": int(held["attempt"]),
            "owner": int(held["owner"].partition("/")[0]) if "owner" in held else None,
            "due": _seconds(held.get("due")),
            "TTL": _seconds(held.get("expires_at"), 1000),
            "hops": int(held.get("hops", 0)),
            "checkpoint": held.get("checkpoint"),
            "cancel requested": "cancel_requested_at" in held,
            "death": held.get("death"),
        }
        if "group" in held and state not in ENDED:
            groups.setdefault(held["group"], []).append((int(held["sequence"]), name))
    view |= {("group", group): [name for _, name in sorted(order)] for group, order in groups.items()}
    view["lane", ""] = sorted(message for message, _ in shipped.lane)
    view["DLQ", ""] = sorted(shipped.dead_letters)
    view["effects", ""] = {name: int(item["effects"]["N"]) for (name,), item in shipped.effects.items.items()}
    view["misplaced payloads", ""] = shipped.misplaced()
    return view | {
        ("worker", str(number)): (shipped_worker.reported, shipped_worker.runs)
        for number, shipped_worker in shipped_workers.items()
    }


def of_reference(reference: Reference, workers: Mapping[int, Worker]) -> View:
    view: dict[tuple[str, str], Any] = {}
    for job in reference.jobs.values():
        view["job", job.name] = {
            "state": job.state,
            "generation": job.generation,
            "attempt": job.attempt,
            "owner": job.owner.number if job.owner else None,
            "due": job.due,
            "TTL": job.expires,
            "hops": job.hops,
            "checkpoint": None if job.checkpoint is None else str(job.checkpoint),
            "cancel requested": job.cancel_requested,
            "death": job.death,
        }
    for group, order in reference.group_orders.items():
        if alive := [job.name for job in order if job.state not in ENDED]:
            view["group", group] = alive
    view["lane", ""] = sorted(reference.lane)
    view["DLQ", ""] = sorted(reference.dead_letters)
    view["effects", ""] = {name: count for name, count in reference.effects.items() if count}
    view["misplaced payloads", ""] = []
    return view | {("worker", str(number)): (worker.reported, bool(worker.job)) for number, worker in workers.items()}


def differences(store: View, reference: View) -> list[str]:
    """Descriptions of all differences; empty if the two agree."""
    found = []
    for kind, name in sorted({*store, *reference}):
        has, act_on_reference = store.get((kind, name)), reference.get((kind, name))
        if isinstance(has, dict) and isinstance(act_on_reference, dict):
            parts = [part for part in {**act_on_reference, **has} if has.get(part) != act_on_reference.get(part)]
            found += [f"{kind} {name}: {part} is {has.get(part)}, not {act_on_reference.get(part)}" for part in parts]
        elif has != act_on_reference:
            found.append(f"{f'{kind} {name}'.strip()}: {has}, not {act_on_reference}")
    return found


def _seconds(epoch: str | None, milliseconds: int = 1) -> float:
    """Seconds since the beginning; infinite for a missing time."""
    return math.inf if epoch is None else since_beginning(int(epoch) * milliseconds)
