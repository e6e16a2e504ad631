"""`tidemill check`: compare an app that is not deployed yet with the jobs and resources of the deployed one."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from tidemill.application.job_filter import JobFilter
from tidemill.application.job_types import JobTypes
from tidemill.application.operations.model_check import CheckedType, ModelCheck
from tidemill.application.ports import UnreadableItem
from tidemill.application.restore.recover import Recovery
from tidemill.aws import clients
from tidemill.cli.errors import CommandError, report_unreadable_item
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option, read_units_option
from tidemill.cli.output import say, show, show_json, show_table
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog
from tidemill.operator.deployments import synthesised_app
from tidemill.operator.deployments.deployed_template import deployed_template
from tidemill.operator.deployments.deployment import stacks_of
from tidemill.operator.deployments.synthesised_app import AssemblyError, SynthesisedApp, needed_exports
from tidemill.operator.restore import restored_table
from tidemill.operator.restore.table_change import table_change
from tidemill.system import clock, job_type_loader

#: About 80 MB of items.
_MOST_READ_UNITS: Final = 10_000
#: At most so many limit keys with a line are checked. Each costs one read.
_MOST_LINES: Final = 1_000
_LIVE: Final = JobFilter(states=tuple(state for state in State if state not in TERMINAL))
_SYNTH: Final = "Synthesise the app of this stage first: `npx cdk synth -q -c stage=STAGE`."


@dataclass(frozen=True, slots=True)
class Refusal:
    """What forbids the deployment, and what to do about it."""

    text: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The result. `refusals` forbid the deployment, and `warnings` do not."""

    items: int
    whole: bool
    types: Sequence[CheckedType]
    #: Documents that may be live jobs. No type is known, so nothing is compared.
    unreadable: Sequence[UnreadableItem]
    refusals: Sequence[Refusal]
    warnings: Sequence[str]


@click.command()
@click.option(
    "--app",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("cdk.out"),
    show_default=True,
    metavar="FOLDER",
    help="The output of `cdk synth`, in the folder of the app.",
)
@read_units_option()
@click.option(
    "--most-read-units",
    type=click.IntRange(min=1),
    default=_MOST_READ_UNITS,
    show_default=True,
    metavar="NUMBER",
    help="Read units that the scan may take in all.",
)
@json_option("Print the result as one JSON object.")
@click.pass_obj
def check(installation: Installation, *, folder: Path, read_units: int, most_read_units: int, as_json: bool) -> None:
    """Check before a deployment that the live jobs can run afterwards. Changes nothing.

    Run it after `npx cdk synth` and before `npx cdk deploy`, in the folder of the app and where the packages of
    functions/requirements.txt are installed. It imports the job files of the working copy.

    Refuses with exit code 1 if a job file cannot be imported, or if the new payload model of a type refuses a live job.
    It names up to three such jobs of each type with the field and the message, and shows no payloads.

    Also refuses a deployment that would leave the jobs table in use for another one, unless `tidemill recover` made
    that one ready to replace it, and a lower epoch; and one that would remove an export that another stack still
    imports, which CloudFormation refuses.

    The exit code is also 1 if a job cannot be read. It is named and not compared, and all others are.

    Warns of types with live jobs that the new code lacks, of limits below what is in use now, and of tables, queues and
    buckets that CloudFormation would remove or replace.

    Scans the jobs table until it has taken --most-read-units, and compares at most 200 payloads of each type.
    """
    app = _app(folder, installation.deployment.stack)
    found = _checked(installation, app, read_units, most_read_units)
    if as_json:
        show_json(_as_json(found, installation.deployment.stack))
    else:
        _show(found)
    if found.refusals:
        raise CommandError(
            f"do not deploy: {'; '.join(refusal.text for refusal in found.refusals)}",
            remedy=" ".join(dict.fromkeys(refusal.remedy for refusal in found.refusals)),
        )
    if found.unreadable:
        raise CommandError(
            f"{count(len(found.unreadable), 'job')} could not be read, and may be live",
            remedy="The lines above name each and the reason: see `unreadable jobs` in the runbook. Deploy before they "
            "are repaired only if the new code is to read them.",
        )


def _app(folder: Path, stack: str) -> SynthesisedApp:
    try:
        app = synthesised_app.read(folder)
    except AssemblyError as error:
        raise CommandError(str(error), remedy=_SYNTH) from error
    if stack not in app.templates:
        named = ", ".join(sorted(app.templates)) or "no stack"
        raise CommandError(f"{folder} holds {named}, and the deployed stack is {stack}", remedy=_SYNTH)
    return app


def _checked(installation: Installation, app: SynthesisedApp, read_units: int, most_read_units: int) -> _Found:
    packages = synthesised_app.job_packages(app.templates[installation.deployment.stack])
    # The packages of the app are beside those of the engine, as in a function.
    sys.path[:0] = [str(app.root), str(app.root / "shared")]
    job_types = job_type_loader.load_sound(packages)
    models = ModelCheck(job_types, installation.payloads)
    unreadable: list[UnreadableItem] = []
    items, cursor = 0, None
    for step in installation.search(read_units).steps(
        _LIVE, now=clock.now(), after=None, most_units=float(most_read_units)
    ):
        items, cursor = step.items, step.cursor
        for item in step.unreadable:
            unreadable.append(item)
            report_unreadable_item(item)
        for job in step.jobs:
            models.take(job)
    types = sorted(models.types.values(), key=lambda found: found.name)
    return _Found(
        items=items,
        whole=cursor is None,
        types=types,
        unreadable=unreadable,
        refusals=list(refusals(installation, app, job_types, types)),
        warnings=[
            *(_gone(found, parked=job_types.lacks(found.name)) for found in types if not found.known),
            *_tight_limits(installation, models),
            *_replaced(installation, app),
        ],
    )


def _gone(found: CheckedType, *, parked: bool) -> str:
    jobs = f"{count(found.live, 'live job')} of the type {found.name}"
    if parked:
        return f"{jobs}, which a broken job file may declare, would be parked until fixed code is deployed"
    return f"{jobs}, which the new code lacks, would wait and then die"


def _tight_limits(installation: Installation, models: ModelCheck) -> Iterator[str]:
    limits, now = installation.limits, clock.now()
    lines = models.lines | set(islice(limits.lines(), _MOST_LINES))
    for line in sorted(lines, key=lambda line: line.key):
        limit = models.limit_of(line)
        if limit is None or not limit.has_slots:
            continue
        state = limits.look(line)
        most, used = limit.slots(state.adapted), len(state.taken(now))
        if most is not None and used > most:
            yield f"the new limit of {line.key} is {most}, and {used} of its slots are in use"


def _replaced(installation: Installation, app: SynthesisedApp) -> Iterator[str]:
    client = clients.cloudformation()
    for stack in sorted(set(stacks_of(client, installation.deployment.stage)) & set(app.templates)):
        for change in synthesised_app.replaced(deployed_template(client, stack), app.templates[stack]):
            yield f"{stack}: {change}, so its content would be lost or left behind"


def _show(found: _Found) -> None:
    read = f"{count(found.items, 'item')} of the table{'' if found.whole else ', which has more'}"
    say(f"Read {read}.")
    if found.types:
        rows = [[one.name, f"{one.live:,}", f"{one.checked:,}", f"{one.refused:,}"] for one in found.types]
        show_table(["type", "live jobs", "compared", "refused"], rows, numbers=(1, 2, 3))
    for one in found.types:
        for example in one.examples:
            fault = f"{example.fault.path}: {example.fault.message}"
            show(visible(f"{one.name}: job {example.job_id} of tenant {example.tenant}: {fault}"))
        if one.unread:
            show(visible(f"{one.name}: the payloads of {count(one.unread, 'job')} could not be read"))
    for warning in found.warnings:
        show(visible(f"Warning: {warning}."))
    if not found.refusals:
        show("No live job that was read would be refused.")


def _as_json(found: _Found, stack: str) -> dict[str, Any]:
    return {
        "stack": stack,
        "items": found.items,
        "whole": found.whole,
        "types": [
            {
                "type": one.name,
                "known": one.known,
                "live": one.live,
                "compared": one.checked,
                "refused": one.refused,
                "unread": one.unread,
                "examples": [
                    {
                        "id": example.job_id,
                        "tenant": example.tenant,
                        "pointer": example.fault.path,
                        "detail": example.fault.message,
                    }
                    for example in one.examples
                ],
            }
            for one in found.types
        ],
        "unreadable": [{"key": item.key, "detail": str(item.error)} for item in found.unreadable],
        "refusals": [refusal.text for refusal in found.refusals],
        "warnings": list(found.warnings),
    }


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
