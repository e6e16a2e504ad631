"""What forbids a deployment, each with what to do."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemill.application.job_types import JobTypes
from tidemill.application.model_check import CheckedType
from tidemill.application.recover import Recovery
from tidemill.aws import clients
from tidemill.cli.installation import Installation
from tidemill.dynamodb.restored_table import DynamoRecoveryLog
from tidemill.operator import restored_table
from tidemill.operator.deployed_template import deployed_template
from tidemill.operator.deployment import stacks_of
from tidemill.operator.synthesised_app import SynthesisedApp, needed_exports
from tidemill.operator.table_change import table_change


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason."""

    text: str
    remedy: str


def refusals(
    installation: Installation, app: SynthesisedApp, job_types: JobTypes, checked: Iterable[CheckedType]
) -> Iterator[Refusal]:
    stack, client = installation.deployment.stack, clients.cloudformation()
    names = {stack, *stacks_of(client, installation.deployment.stage)} & set(app.templates)
    deployed = {name: deployed_template(client, name) for name in sorted(names)}
    if change := table_change(installation.deployment, deployed[stack], app.templates[stack], _recovery_in):
        yield Refusal(
            change,
            "Set jobs_stream and epoch of this stage in stacks/stages.py as `tidemill recover` printed them, or give "
            "them with -c, and synthesise again.",
        )
    for exporter, importer in needed_exports(deployed, app.templates):
        yield Refusal(
            f"CloudFormation would refuse it, because {importer} still imports what {exporter} would export no longer",
            f"Deploy {importer} by itself first, with the same settings: `npx cdk deploy --exclusively {importer} …`.",
        )
    for fault in job_types.faults:
        yield Refusal(str(fault), "Correct the job file, or install what it imports beside the command.")
    for found in checked:
        if found.refused:
            yield Refusal(
                f"the new model of {found.name} refuses live jobs",
                "Accept the old payloads too, change them with `tidemill migrate`, or let these jobs end first.",
            )


def _recovery_in(table: str) -> Recovery | None:
    return DynamoRecoveryLog(clients.dynamodb(), table=table).read() if restored_table.read(table) else None
