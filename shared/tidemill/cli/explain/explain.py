"""`tidemill explain`: why a job is not running, and what has happened to it."""

import click

from tidemill.application.explain.explain import explain as explained
from tidemill.application.explain.job_story import story
from tidemill.cli.explain.any_tenant import NoSuchJobError, tenant_of, tenant_option
from tidemill.cli.formatting import readable_time, timestamp, visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show, show_json, show_prose
from tidemill.cli.parameter_types import JOB_ID

#: The texts of the history begin in this column.
_UNDER_TEXT = " " * 24


@click.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@tenant_option
@json_option("Print the explanation as one JSON object.")
@click.pass_obj
def explain(installation: Installation, job_id: str, tenant: str | None, *, as_json: bool) -> None:
    """Say why a job of any tenant is not running.

    It names the job before it in its group, the limit and the jobs before it in its line, the time that it waits for,
    the cause of a hold, the lease of its run, or the mapping or schedule that is not enabled. If the lane of a job that
    is ready has no message, its message was lost or is not sent yet.

    Then it tells what has happened to the job, from the job document. That keeps the last transitions and the last ten
    errors.
    """
    tenant = tenant or tenant_of(installation, job_id)
    facts = installation.facts(tenant, job_id)
    if facts is None:
        raise NoSuchJobError(tenant, job_id)
    job, answer, events = facts.job, explained(facts), story(facts.job)
    if as_json:
        show_json(
            {
                "id": job.id,
                "tenant": job.tenant,
                "type": job.type,
                "lane": job.lane,
                "state": job.state,
                "reason": answer.reason.name.lower().replace("_", "-"),
                "why": list(answer.sentences),
                "until": answer.until and timestamp(answer.until),
                "history": [{"at": timestamp(at), "what": what} for at, what in events],
            }
        )
        return
    # The state of an ended job is the reason.
    reason = "" if job.state.terminal else f": {answer.reason}"
    show(f"{visible(job.id)}  {visible(job.type)}  {job.state}{reason}", style="bold")
    for sentence in answer.sentences:
        show_prose(f"  {visible(sentence)}")
    show("history", style="bold")
    show(f"  tenant {visible(job.tenant)}")
    for at, what in events:
        show_prose(f"  {readable_time(at)}  {visible(what)}", indent=_UNDER_TEXT)
