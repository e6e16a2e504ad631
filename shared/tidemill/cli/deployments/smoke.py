"""`tidemill smoke`: check after a deployment what only an account can show."""

import time

import click

from tidemill.aws.http_client import HttpApi
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show, show_json
from tidemill.operator.deployments.smoke import Smoke
from tidemill.system import clock


@click.command()
@json_option("Print each check as a line of JSON.")
@click.pass_obj
def smoke(installation: Installation, *, as_json: bool) -> None:
    """Check a deployment where it runs, and say what to fix. Run it after the first `cdk deploy`.

    Sends a request without an identity, and one to each function behind the API. Submits a canary job to each lane and
    waits for its end; a stage with canary=off has none. Calls wake, reconcile and the canary as the scheduler does, and
    asks reconcile which resources differ from the template. Reads the alarms, the quota of concurrent executions, and
    the log groups.

    The canary jobs have no effect. They are all that the command leaves behind.

    The exit code is 1 if a check found a fault.
    """
    deployment = installation.deployment
    checks = Smoke(
        deployment=deployment,
        api=installation.api,
        anonymous=HttpApi(deployment.api_url, lambda _: None),
        clock=clock.now,
        pause=time.sleep,
    )
    failed = 0
    for found in checks.findings():
        failed += bool(found.faults)
        if as_json:
            show_json({"check": found.check, "ok": not found.faults, "faults": list(found.faults)}, one_line=True)
            continue
        show(f"{'failed' if found.faults else 'passed'}  {found.check}", style="red" if found.faults else "")
        for fault in found.faults:
            show(visible(f"        {fault}"))
        if found.faults:
            show(f"        {found.remedy}")
    if failed:
        raise CommandError(f"{count(failed, 'check')} of this deployment failed")
