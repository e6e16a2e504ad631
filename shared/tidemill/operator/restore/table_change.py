"""Whether a deployment would give the functions another jobs table than the one in use. Pure.

The stack's own table is a resource of its template. An adopted one is not, so a template that leaves it shows nothing
of that.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tidemill.application.restore.recover import Recovery
from tidemill.names import Env
from tidemill.operator.deployments.deployment import Deployment


def table_change(
    deployment: Deployment,
    deployed: Mapping[str, Any],
    synthesised: Mapping[str, Any],
    recovery_in: Callable[[str], Recovery | None],
) -> str | None:
    """Why the deployment must not be made, or None. `recovery_in` reads the last recovery of the table of that name."""
    variables = _variables(synthesised)
    table, epoch = variables.get(Env.JOBS_TABLE), int(variables.get(Env.EPOCH, 0))
    in_use = f"{deployment.jobs_table} of epoch {deployment.epoch}"
    if isinstance(table, Mapping):
        # The stack's own table. If it is to be another resource than now, that is listed as a replacement.
        if deployed.get("Resources") and table.get("Ref") in deployed["Resources"]:
            return None
        return f"the stage would leave the jobs table {in_use} for one of its own, because jobs_stream is not set"
    if table == deployment.jobs_table:
        lower = epoch < deployment.epoch
        return f"the epoch {epoch} is lower than that in use, {deployment.epoch}" if lower else None
    if table is None or _replaces(recovery_in(str(table)), deployment, str(table), epoch):
        return None
    return f"the stage would leave the jobs table {in_use} for {table}, which was not recovered as epoch {epoch} for it"


def _replaces(recovery: Recovery | None, deployment: Deployment, table: str, epoch: int) -> bool:
    return (
        recovery is not None
        # The backup of a recovered table has the recovery of that table.
        and recovery.table == table
        and recovery.replaces in {"", deployment.jobs_table}
        and recovery.epoch == epoch > deployment.epoch
    )


def _variables(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """Yield the variables of each function that has the jobs table. Each has table and epoch from one set."""
    for resource in template.get("Resources", {}).values():
        variables: Mapping[str, Any] = resource.get("Properties", {}).get("Environment", {}).get("Variables", {})
        if Env.JOBS_TABLE in variables:
            return variables
    return {}
