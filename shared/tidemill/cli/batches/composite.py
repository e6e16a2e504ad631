"""A batch or a flow: the caller's own over the HTTP API, or one of any tenant, for operators, from the table."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from tidemill.application.flows.flow_view import counts_of
from tidemill.cli.api_call import call
from tidemill.cli.errors import CommandError
from tidemill.cli.explain.any_tenant import read
from tidemill.cli.installation import Installation
from tidemill.domain.job import Job


def own(installation: Installation, collection: str, job_id: str, *, change: str | None) -> dict[str, Any]:
    """The one with this id in `/batches` or `/flows`, after the change with that path, such as `cancel`."""
    path = f"{collection}/{quote(job_id, safe='')}"
    if change:
        call(installation.api, "POST", f"{path}/{change}")
    found, _ = call(installation.api, "GET", path)
    # Only a large flow has more pages.
    while cursor := found.get("cursor"):
        more, _ = call(installation.api, "GET", f"{path}?cursor={cursor}")
        nodes = [*found["nodes"], *more["nodes"]]
        found = more | {"nodes": nodes, "counts": counts_of(nodes)}
    return {name: value for name, value in found.items() if name != "cursor"}


def of_tenant(installation: Installation, tenant: str, job_id: str, *, is_one: Callable[[Job], bool], what: str) -> Job:
    """The job of a batch or flow. Raises `CommandError` without one."""
    job = read(installation, tenant, job_id)
    if not is_one(job):
        raise CommandError(
            f"{job_id} is a job of the type {job.type}, and no {what}",
            remedy=f"Use `tidemill get {job_id} --tenant {tenant}`.",
        )
    return job
