"""The ids that are derived: from a key, from `unique`, and from the parent, the batch or the flow of a job. Pure.

Each kind of derived id has a UUID namespace of its own, so that ids of two kinds never collide, and no text of a caller
leads to one. Keys that the engine derives share the namespace of the callers' keys, since two versions of the code must
find the same job. So a caller's key that has the form of one leads to a namespace of its own.
"""

import json
from datetime import datetime
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Unique
from tidemill.domain.time_constants import EPOCH
from tidemill.names import SCHEDULE_TENANT

_KEYED_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.job")
_RESERVED_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.reserved")
_UNIQUE_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.unique")
_FOLLOW_UP_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.follow-up")
_NODE_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.node")
_CALLBACK_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.callback")
#: The keys of the jobs of events, of batches and of flows begin so, and only these have the keyed ids of such keys.
RESERVED_KEYS: Final = ("event/", "batch/", "flow/")


def keyed_job_id(tenant: str, key: str) -> str:
    """The id of the job that has this idempotency key of this tenant. The key is derived, or of no derived form."""
    return str(uuid5(_KEYED_IDS, json.dumps([tenant, key])))


def submitted_job_id(tenant: str, key: str) -> str:
    """Return the id for a key that a caller chose. The key may look like one that the engine derives."""
    # A type and a time begin the key of a periodic job. Its handler chooses the keys of its follow-up jobs.
    reserved = key.startswith(RESERVED_KEYS) or (tenant == SCHEDULE_TENANT and " " in key)
    if not reserved:
        return keyed_job_id(tenant, key)
    return str(uuid5(_RESERVED_IDS, json.dumps([tenant, key])))


def unique_job_id(tenant: str, type_: str, unique: Unique, payload_hash: str, *, now: datetime) -> str:
    """The id of the only job that `unique` allows in the period that contains `now`."""
    period = _period(unique, now)
    by = ["key", unique.key] if unique.key is not None else ["payload", payload_hash]
    return str(uuid5(_UNIQUE_IDS, json.dumps([tenant, type_, unique.period.total_seconds(), period, *by])))


def period_end(unique: Unique, now: datetime) -> datetime:
    """The end of the period that contains `now`."""
    return EPOCH + (_period(unique, now) + 1) * unique.period


def _period(unique: Unique, now: datetime) -> int:
    return (now - EPOCH) // unique.period


def follow_up_id(parent: Job, index: int) -> str:
    """The same id in every attempt to settle the success of `parent`, and another for a later job of its key."""
    parts = [parent.tenant, parent.id, parent.created_at.isoformat(), index]
    return str(uuid5(_FOLLOW_UP_IDS, json.dumps(parts)))


def callback_id(batch: Job, name: str) -> str:
    """The same for each end of the batch that submits it. An index would be that of another one after a redrive."""
    parts = [batch.tenant, batch.id, batch.created_at.isoformat(), name]
    return str(uuid5(_CALLBACK_IDS, json.dumps(parts)))


def node_job_id(flow: Job, node: str) -> str:
    """The id of the job of a node, and of another job for a later flow of the key of this one."""
    return str(uuid5(_NODE_IDS, json.dumps([flow.tenant, flow.id, flow.created_at.isoformat(), node])))
