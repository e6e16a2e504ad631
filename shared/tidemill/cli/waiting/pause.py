"""`tidemill pause` and `tidemill resume`: hold back the jobs of a lane, type, tenant, group or limit key for a time."""

from datetime import datetime
from typing import Final

import click

from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, readable_time, timestamp, visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option, reason_option, yes_option
from tidemill.cli.output import say, show_change
from tidemill.cli.parameter_types import UNTIL
from tidemill.cli.waiting.known_targets import unknown, warn_if_misspelt
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.operations.runtime_configuration import PAUSE_PREFIX
from tidemill.domain.waiting.pauses import LARGEST_DRAIN_PER_SECOND, Scope, Target, drain_rate, value_of
from tidemill.system import clock

_RATE: Final = click.IntRange(1, LARGEST_DRAIN_PER_SECOND)
_tenant_option = click.option("--tenant", help="The tenant of a group.")


@click.command()
@click.argument("target", metavar="TARGET")
@_tenant_option
@reason_option("Why, for status and history.")
@click.option("--until", type=UNTIL, help="The end: 2h from now, the next 14:00 UTC, or a timestamp.")
@click.option("--reject-new", is_flag=True, help="Answer new jobs over HTTP with 503 and Retry-After.")
@click.option("--rate", type=_RATE, help="Jobs to start each second after the end; by default 10.")
@yes_option
@json_option("Print the pause as one JSON object.")
@click.pass_obj
def pause(
    installation: Installation,
    target: str,
    tenant: str | None,
    *,
    reason: str,
    until: datetime | None,
    reject_new: bool,
    rate: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Start no further run of the jobs of TARGET.

    It ends with `tidemill resume`, or by itself at --until.

    TARGET is lane=bulk, type=mail.welcome, tenant=NAME, group=NAME with --tenant, or limit=KEY as `tidemill explain`
    and `tidemill status` show it. It acts within 10 seconds, or within 60 where the stage has AppConfig as its source.
    Runs that have begun go on. A name that nothing has is a warning: before the question, or at the end with --yes.

    Paused jobs are accepted and parked. They use no attempt, and a job submitted meanwhile is not sent to its lane. The
    jobs of a group keep their order. A deadline counts on.

    A second pause of the same TARGET replaces the first.
    """
    found = _target(target, tenant)
    if reject_new and found.scope is Scope.LIMIT:
        raise click.UsageError("--reject-new cannot refuse by limit key, which only a worker knows")
    require_confirmation(yes=yes)
    configurator = installation.configurator
    present = configurator.read()
    end = f"until {readable_time(until)}" if until else "until it is resumed"
    say(visible(f"Pause {found} {end}{', and refuse new jobs' if reject_new else ''}."))
    if not yes:
        warn_if_misspelt(found, unknown(installation, found))
    if not confirmed("Pause it now?", yes=yes):
        return
    value = value_of(reject_new=reject_new, per_second=rate)
    changed = configurator.set(
        present, PAUSE_PREFIX + str(found), value, by=installation.caller, reason=reason, until=until
    )
    show_change(
        {"paused": str(found), "until": until and timestamp(until), "version": changed.version}, as_json=as_json
    )
    if yes:
        # Last, because in an incident the pause must not wait for these reads.
        warn_if_misspelt(found, unknown(installation, found))


@click.command()
@click.argument("target", metavar="TARGET")
@_tenant_option
@click.option("--rate", type=_RATE, help="Jobs to start each second; by default as the pause says.")
@reason_option("Why, for the history.")
@yes_option
@json_option("Print the result as one JSON object.")
@click.pass_obj
def resume(
    installation: Installation,
    target: str,
    tenant: str | None,
    *,
    rate: int | None,
    reason: str,
    yes: bool,
    as_json: bool,
) -> None:
    """End the pause of TARGET. Its parked jobs start in the order submitted, at a rate.

    Ten seconds later at most, new jobs run at once, so they may run before the parked ones. Wake releases those within
    a minute or two.
    """
    found = _target(target, tenant)
    require_confirmation(yes=yes)
    configurator = installation.configurator
    present = configurator.read()
    in_force = {str(one.target): one for one in present.pauses(clock.now())}
    if str(found) not in in_force:
        listed = ", ".join(in_force) or "nothing"
        raise CommandError(f"{found} is not paused", remedy=f"Paused at present: {listed}.")
    waiting = installation.waiting(found.line)
    number = f"{'' if waiting.exact else 'more than '}{count(waiting.number, 'parked job')}"
    say(visible(f"Resume {found}: {number}, {rate or in_force[str(found)].rate.count} a second."))
    if not confirmed("Resume it now?", yes=yes):
        return
    changed = configurator.remove(
        present,
        PAUSE_PREFIX + str(found),
        by=installation.caller,
        reason=reason,
        drain_rate=drain_rate(rate) if rate else None,
    )
    show_change({"resumed": str(found), "waiting": waiting.number, "version": changed.version}, as_json=as_json)


def _target(text: str, tenant: str | None) -> Target:
    scope, _, name = text.partition("=")
    if scope == Scope.GROUP and tenant:
        text = f"{scope}={tenant} {name}"
    elif tenant:
        raise click.UsageError("--tenant is for a group")
    try:
        return Target.parse(text)
    except InvalidSettingError as error:
        hint = "; name it with --tenant" if scope == Scope.GROUP else ""
        raise click.UsageError(f"{error}{hint}") from error
