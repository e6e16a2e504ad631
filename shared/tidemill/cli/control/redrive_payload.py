"""`tidemill redrive ID --payload`: requeue one dead job with another payload."""

import json
import shlex
from itertools import islice
from typing import Final

import click

from tidemill.application.job_filter import JobFilter
from tidemill.application.submission.validation import read_payload
from tidemill.cli.control.change_options import ChangeOptions
from tidemill.cli.control.job_filter_options import as_options
from tidemill.cli.control.redrive_run import say_why
from tidemill.cli.errors import CommandError, report_unreadable
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.json_input import read_source
from tidemill.cli.operations.audit import audited
from tidemill.cli.output import say, show, show_json
from tidemill.domain.errors import PayloadTooLargeError
from tidemill.domain.job import Job
from tidemill.names import BUILT_IN_PREFIX, LARGEST_BODY_BYTES, TICK_PAYLOAD, TICK_SCHEDULED_AT, TICK_TYPE
from tidemill.operator.deployments.function_call import ask

_NEVER: Final = ""


def redrive_with_payload(installation: Installation, wanted: JobFilter, source: str, how: ChangeOptions) -> None:
    """`source` is JSON, `@FILE`, or `-` for stdin. The deployed model decides before anything is written."""
    value = json.loads(read_source(source))
    payload, value = read_payload(value)
    if len(payload) > LARGEST_BODY_BYTES:
        raise PayloadTooLargeError(len(payload), LARGEST_BODY_BYTES)
    job = _the_job(installation, wanted)
    if job.type.startswith(BUILT_IN_PREFIX):
        # Its model does not check the graph of a flow, for example, and a node could start before its parents.
        raise CommandError(
            f"job {visible(job.id)} is of the type {job.type}, whose payload cannot be replaced",
            remedy="Redrive it without --payload, or cancel it and submit what it stands for again.",
        )
    faults = ask(
        installation.deployment, "tick", {TICK_TYPE: job.type, TICK_SCHEDULED_AT: _NEVER, TICK_PAYLOAD: value}
    )["faults"]
    if faults:
        raise CommandError(
            f"the payload does not fit the type {visible(job.type)}: {visible('; '.join(faults))}",
            remedy="Nothing was changed. `tidemill dlq show ID` shows the present payload.",
        )
    plan = visible(f"Redrive {job.id} of the type {job.type} with another payload of {count(len(payload), 'byte')}.")
    dropped = [name for name, value in job.given_to_payload.items() if value]
    if dropped:
        plan += f" It drops what the present payload was given: {', '.join(dropped)}."
    if how.dry_run:
        planned = {"jobs": 1, "id": job.id, "payload_bytes": len(payload), "drops": dropped}
        show_json(planned) if how.as_json else show(plan)
        return
    say(plan)
    if not how.confirmed("Replace its payload and redrive it?"):
        return
    counts = {"written": 0, "skipped": 1}
    options = as_options(wanted) | {"payload": "replaced"}
    with audited(installation, "redrive", options=options, counts=lambda: counts, reason=how.reason):
        if installation.redriver.redrive_with(
            job, payload, installation.payloads, by=installation.caller, reason=how.reason, refused=say_why
        ):
            counts |= {"written": 1, "skipped": 0}
    if how.as_json:
        show_json(counts)
    else:
        show(f"Redrove {counts['written']} of 1 job.")


def _the_job(installation: Installation, wanted: JobFilter) -> Job:
    found = list(islice(installation.redriver.dead_jobs(wanted, unreadable=report_unreadable), 2))
    if len(found) > 1:
        raise click.UsageError("several dead jobs have this ID: name the tenant with --tenant")
    if found:
        return found[0]
    (job_id,) = set(wanted.ids)
    likely = [wanted.tenant] if wanted.tenant else installation.own_tenants()
    for tenant in installation.finder.any_job(job_id, likely=likely).tenants:
        job = installation.store.get(tenant, job_id)
        if job and wanted.tenant in {None, tenant}:
            raise CommandError(
                f"job {visible(job_id)} is {job.state}, and only a dead job is redriven",
                remedy=f"`tidemill explain {shlex.quote(job_id)}` says more.",
            )
    raise CommandError(f"no dead job has the ID {visible(job_id)}", remedy="`tidemill dlq list` lists the dead jobs.")
