"""`tidemill recover`: make a table that was restored from a backup ready to replace the table in use."""

import json
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from datetime import timedelta
from itertools import chain
from typing import Any, Final, TextIO

import click
from msgspec.structs import asdict

from tidemill.application.configuration import CACHED_FOR
from tidemill.application.restore.recover import Fate, Recovered, Recovery, recovery_of
from tidemill.aws import clients
from tidemill.cli.control.change_options import ChangeOptions, change_options
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, readable_time, timestamp, visible
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import read_units_option
from tidemill.cli.output import say, show, show_json, show_table
from tidemill.cli.restore.restored_table import RestoredTable
from tidemill.domain.waiting.pauses import Scope
from tidemill.operator.deployments.deployment import Deployment, stacks_of
from tidemill.system import clock

#: A new table on demand takes 12,000 of them:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
_READ_UNITS: Final = 4000
#: A pause acts on every function after this, even if some reads of it fail.
_ACTS_WITHIN: Final = 6 * CACHED_FOR
#: The same where they poll AppConfig, each 20 seconds.
_ACTS_WITHIN_FROM_APP_CONFIG: Final = timedelta(minutes=2)
#: The most jobs of each kind that are named.
_NAMED: Final = 20


@click.command()
@click.argument("table_name", metavar="TABLE")
@read_units_option("Read units per second that the scans may take from each table.", default=_READ_UNITS)
@click.option("--jobs", type=click.File("w"), metavar="FILE", help="Write each job of the report as a line of JSON.")
@click.option("--paused", is_flag=True, help="Leave each lane of TABLE paused, until `tidemill resume`.")
@change_options(
    dry_run="Print the plan and the report, and change nothing.", json="Print the result as one JSON object."
)
@click.pass_obj
def recover(
    installation: Installation,
    table_name: str,
    *,
    read_units: int,
    jobs: TextIO | None,
    paused: bool,
    how: ChangeOptions,
) -> None:
    """Make TABLE, restored from a backup, ready for use.

    Turns on its stream, TTL, backups and protection, checks its indexes, and raises its epoch: no function from before
    the restore acts on its jobs. Dispatches each job anew. Then deploy with the commands that it prints.

    Reports each job that may run again, because it ran after the restore point, and each job that is missing, because
    it was accepted after it. For this it reads the table in use, whose lanes must be paused, so that no further job
    starts.

    Changes nothing of the table in use. Safe to repeat: after an interruption the same command continues.
    """
    how.require_confirmation()
    restored = RestoredTable(installation, table_name, read_units=read_units)
    former = restored.former
    if former is None:
        say("The table in use cannot be read: every live job may run again, and missing jobs are unknown.")
    elif not how.dry_run:
        _require_pause(installation)
    seen = restored.log.read()
    in_use = installation.deployment
    recovery = recovery_of(
        seen, table=table_name, replaces=in_use.jobs_table, deployed_epoch=in_use.epoch, now=clock.now()
    )
    _show_plan(restored, recovery, continued=recovery == seen)
    if not how.dry_run and not how.confirmed(f"Recover {visible(table_name)} now?"):
        return
    report = _Report(jobs)
    options = {"table": table_name, "epoch": recovery.epoch}
    recorded = audited(
        installation, "recover", options=options, counts=report.counts, reason=how.reason, auditor=restored.auditor
    )
    with nullcontext() if how.dry_run else recorded:
        if not how.dry_run:
            restored.complete()
            if paused:
                restored.pause(installation.deployment.lanes, by=installation.caller, reason=how.reason)
            if recovery != seen:
                restored.log.write(recovery, seen=seen)
        for each in chain(restored.recovered(recovery, change=not how.dry_run), restored.missing()):
            report.add(each)
    settings = restore_settings(installation.deployment, jobs_stream=restored.facts.stream_arn, epoch=recovery.epoch)
    if how.as_json:
        restored_to = restored.facts.restored_to
        show_json(report.counts() | {"settings": settings, "restored_to": restored_to and timestamp(restored_to)})
    else:
        report.show(former_read=former is not None)
        if not how.dry_run:
            _show_deployment(in_use, settings)


def _show_deployment(in_use: Deployment, settings: Mapping[str, Any]) -> None:
    further = set(stacks_of(clients.cloudformation(), in_use.stage)) - {in_use.stack}
    for command in deploy_commands(settings, further):
        show(f"Next: {command}")


def _require_pause(installation: Installation) -> None:
    """No run begins in the former table from now on, so that the report names every job that ran."""
    lanes = installation.deployment.lanes
    pauses = installation.configurator.acting().pauses(clock.now())
    paused = {pause.target.name: pause for pause in pauses if pause.target.scope is Scope.LANE and pause.reject_new}
    if left := [lane for lane in lanes if lane not in paused]:
        raise CommandError(
            f"jobs may still start in the table in use: {', '.join(left)}",
            remedy=f"`tidemill pause lane={left[0]} --reject-new`, and the same for each lane that was named.",
        )
    if installation.deployment.app_config:
        # AppConfig may have got the pause long after it was recorded.
        until = clock.now() + _ACTS_WITHIN_FROM_APP_CONFIG
    else:
        until = max((paused[lane].since for lane in lanes), default=clock.now() - _ACTS_WITHIN) + _ACTS_WITHIN
    if (wait := until - clock.now()) > timedelta(0):
        say(f"The pause acts in {wait.total_seconds():.0f} s.")
        time.sleep(wait.total_seconds())


def _show_plan(restored: RestoredTable, recovery: Recovery, *, continued: bool) -> None:
    facts = restored.facts
    point = f"restored to {readable_time(facts.restored_to)}" if facts.restored_to else "of an unknown restore point"
    say(visible(f"Table {facts.name}, {point}."))
    say(f"To turn on: {', '.join(restored.to_turn_on) or 'nothing'}.")
    say(f"Epoch {recovery.epoch}{', which an earlier call began' if continued else ''}.")


class _Report:
    """Counts all jobs, names some, and writes each to `file`."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self._counts: Counter[str] = Counter()
        self._again: list[Recovered] = []
        self._missing: list[Recovered] = []

    def add(self, each: Recovered) -> None:
        self._counts[each.fate] += 1
        self._counts["may_run_again"] += each.may_run_again
        for wanted, named in ((each.may_run_again, self._again), (each.fate is Fate.MISSING, self._missing)):
            if wanted and len(named) < _NAMED:
                named.append(each)
        if self._file:
            self._file.write(json.dumps(asdict(each)) + "\n")

    def counts(self) -> dict[str, Any]:
        return {name: self._counts[name] for name in (*Fate, "may_run_again")}

    def show(self, *, former_read: bool) -> None:
        for line in self._lines(former_read=former_read):
            show(line)
        for title, named in (("MAY RUN AGAIN", self._again), ("MISSING", self._missing)):
            if named:
                show_table(
                    (title, "TENANT", "TYPE", "STATE"),
                    [(visible(each.job_id), visible(each.tenant), visible(each.type), each.state) for each in named],
                )

    def _lines(self, *, former_read: bool) -> Iterator[str]:
        found = self._counts
        yield f"{count(found[Fate.DISPATCHED], 'job')} sent again."
        yield f"{count(found[Fate.GIVEN_BACK], 'run')} given back, to start again."
        yield f"{count(found[Fate.WAITS], 'job')} left to wait."
        yield f"{count(found[Fate.DEAD], 'dead job')}, whose DLQ messages are sent again."
        yield f"{count(found['may_run_again'], 'job')} may run again."
        if former_read:
            yield f"{count(found[Fate.MISSING], 'job')} accepted after the restore point: missing."
        else:
            yield "Jobs accepted after the restore point: in the lines `accepted` of the log of submit."
        if found[Fate.UNREADABLE]:
            yield f"{count(found[Fate.UNREADABLE], 'item')} that this version cannot read."


def restore_settings(deployment: Deployment, *, jobs_stream: str | None, epoch: int) -> Mapping[str, Any]:
    """By the name of the setting. Without a stage a deployment is one of `dev`, whichever stage was restored."""
    stage, _, installation = deployment.stage.partition("-")
    return {
        "stage": stage,
        **({"installation": installation} if installation else {}),
        # The pauses of a restore set off the alarms that would end a gradual deployment.
        "gradual_deployment": "off",
        "jobs_stream": jobs_stream,
        "epoch": epoch,
    }


def deploy_commands(settings: Mapping[str, Any], further_stacks: Iterable[str]) -> list[str]:
    """The further stacks of the stage go first: CloudFormation removes no export of the jobs table that they import."""
    options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
    first = " ".join(sorted(further_stacks))
    return [
        *([f"npx cdk deploy --exclusively {first} {options}"] if first else []),
        f"npx cdk deploy --all {options}",
    ]
