"""Enter, run and read the jobs of one group."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from tests.support.builders import NOW, SETTLEMENTS, TENANT, a_job, claimed, fresh_token, stored
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.job import Job
from tidemill.domain.states import State

GROUP: Final = "parcels of ada"
#: Longer than the longest delay of an SQS message, 15 minutes.
LONG: Final = timedelta(hours=1)


def enter(store: JobStore, count: int = 1, **changes: Any) -> list[Job]:
    return [store.insert_if_absent(a_job(**{"group": GROUP} | changes)) for _ in range(count)]


def end(store: JobStore, job: Job, state: State = State.SUCCEEDED) -> Job:
    """Claim the job, which must be the head of the group, and settle it into `state`."""
    store.settle(claimed(store, stored(store, job)), SETTLEMENTS[state], now=NOW)
    return stored(store, job)


def advance(store: JobStore) -> Job | None:
    return store.advance(TENANT, GROUP, now=NOW)


def redrive(store: JobStore, dead: Job) -> Job:
    return store.redrive(dead, token=fresh_token(), now=NOW, by="ada")


def run_all(store: JobStore, jobs: Sequence[Job]) -> list[str]:
    """Run the head until the group is empty. Returns the ids in the order of the runs."""
    ran = []
    job = next((job for job in jobs if stored(store, job).state is State.QUEUED), None)
    while job:
        ran.append(end(store, job).id)
        job = advance(store)
    return ran


def ids(jobs: Sequence[Job]) -> list[str]:
    return [job.id for job in jobs]


def items(table: Table, prefix: str = "") -> list[dict[str, Any]]:
    """The items whose partition keys begin with `prefix`."""
    found: Any = table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]
    return [item for item in found if item["pk"]["S"].startswith(prefix)]
