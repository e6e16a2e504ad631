"""`tidemill config`: read and change the runtime configuration, which acts without a deployment."""

import json
from datetime import datetime
from itertools import takewhile
from typing import Any, Final

import click

from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import DASH, readable_time, timestamp
from tidemill.cli.installation import Installation
from tidemill.cli.operations.record_options import limited, record_options
from tidemill.cli.options import json_option, reason_option, yes_option
from tidemill.cli.output import say, show, show_json, show_json_lines, show_table
from tidemill.cli.parameter_types import UNTIL
from tidemill.cli.waiting.known_targets import unknown_setting, warn_if_misspelt
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.operations.runtime_configuration import Change, RuntimeConfiguration
from tidemill.domain.operations.setting import Setting
from tidemill.system import clock

_ABSENT: Final = "not set"


@click.group()
def config() -> None:
    """Read and change the runtime configuration."""


@config.command("get")
@click.argument("name", required=False)
@json_option("Print one JSON object with the version.")
@click.pass_obj
def get(installation: Installation, name: str | None, *, as_json: bool) -> None:
    """Show the settings in force, or the value of one.

    Each setting has who set it, when, why, and until when.
    """
    present = installation.configurator.read()
    if installation.deployment.app_config:
        _compare_with_copy(installation, present.version)
    now = clock.now()
    settings = {key: one for key, one in present.settings.items() if one.in_force(now) and name in {None, key}}
    if name is not None and name not in settings:
        raise CommandError(f"no setting {name!r} is in force", remedy="`tidemill config get` lists all settings.")
    if as_json:
        show_json(
            {
                "version": present.version,
                "settings": {
                    key: {
                        "value": one.value,
                        "at": timestamp(one.at),
                        "by": one.by,
                        "reason": one.reason or None,
                        "until": one.until and timestamp(one.until),
                    }
                    for key, one in sorted(settings.items())
                },
            }
        )
    elif name is not None:
        show(json.dumps(settings[name].value))
    else:
        say(f"version {present.version}")
        show_table(
            ("NAME", "VALUE", "SINCE", "UNTIL", "BY", "REASON"),
            [
                (key, json.dumps(one.value), readable_time(one.at), _until(one.until), one.by, one.reason)
                for key, one in sorted(settings.items())
            ],
        )


def _compare_with_copy(installation: Installation, version: int) -> None:
    try:
        acting = installation.configurator.acting().version
    except StoreUnavailableError as error:
        say(f"Which version the functions read is unknown, because AppConfig cannot be read: {error}")
        return
    if acting != version:
        say(f"AppConfig has version {acting}, which the functions read: `tidemill config deploy` gives them {version}.")


@config.command("set")
@click.argument("name")
@click.argument("value", required=False)
@click.option("--remove", is_flag=True, help="Remove the setting instead; without VALUE.")
@reason_option("Why, for the history.")
@click.option("--until", type=UNTIL, help="The end: 2h from now, the next 14:00 UTC, or a timestamp.")
@click.option("--version", type=int, help="Refuse unless the configuration has this version.")
@yes_option
@json_option("Print the change as one JSON object.")
@click.pass_obj
def set_(
    installation: Installation,
    name: str,
    value: str | None,
    *,
    remove: bool,
    reason: str,
    until: datetime | None,
    version: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Set one setting to a JSON VALUE, or remove it.

    flags.NAME is a flag for the code of your job types, which reads it from run.flags. types.TYPE.OPTION overrides an
    option of a job type: max_attempts, backoff_seconds, backoff_cap_seconds, timeout_seconds, concurrency_per_key or
    rate_per_key. limits.NAME.OPTION overrides one of the last two for a shared limit, which those of its types do not.
    breakers.NAME forces a breaker: {"force": "open"} or {"force": "closed"}. quotas.TENANT bounds the jobs that a
    tenant submits over HTTP, and quotas.default those of every other tenant: {"count": 1000, "period_seconds": 60}.
    caps.TENANT and caps.default bound how many jobs of a tenant run at once in each lane, from 1 to 100, and
    weights.TENANT multiplies the default cap. strain.level, from 0 to 3, makes the HTTP API refuse jobs of sheddable
    types and accept those of deferrable types for later, and slows the lanes bulk and default down. governor with
    {"off": true} stops the governor, which sets such a level by itself. A change acts within 10 seconds, or within 60
    where the stage has AppConfig as its source, and deployments keep it. It records who made it, as AWS STS verifies
    it, and the --reason.

    The name of a type that no job has, or of a breaker of which no call has failed, is a warning: before the question,
    or at the end with --yes.

    If the configuration changes between the question and your answer, the command changes nothing and says so.
    """
    if remove == (value is not None):
        raise click.UsageError("give either a VALUE or --remove")
    if remove and until:
        raise click.UsageError("--until needs a VALUE")
    parsed = None if value is None else _json(value)
    require_confirmation(yes=yes)
    configurator = installation.configurator
    present = configurator.read(expected=version)
    # Both refuse what cannot be changed, before the question.
    if remove:
        present.without_setting(name, now=clock.now())
    else:
        present.with_setting(Setting(name=name, value=parsed, at=clock.now(), by="", reason=reason, until=until))
    say(f"{name}: {_shown(present, name)} -> {_ABSENT if remove else json.dumps(parsed)}")
    if not (yes or remove):
        warn_if_misspelt(name, unknown_setting(installation, name))
    if not confirmed("Change the runtime configuration?", yes=yes):
        return
    by = installation.caller
    if remove:
        changed = configurator.remove(present, name, by=by, reason=reason)
    else:
        changed = configurator.set(present, name, parsed, by=by, reason=reason, until=until)
    if as_json:
        show_json({"version": changed.version, "name": name, "value": parsed, "removed": remove})
    else:
        show(f"version {changed.version}")
    if yes and not remove:
        # Last, because in an incident the change must not wait for these reads.
        warn_if_misspelt(name, unknown_setting(installation, name))


@config.command("deploy")
@yes_option
@json_option("Print the version as one JSON object.")
@click.pass_obj
def deploy(installation: Installation, *, yes: bool, as_json: bool) -> None:
    """Deploy all settings to AppConfig again.

    For a stage that has AppConfig as its source, after a change that AppConfig did not take. It changes no setting,
    and you can repeat it.
    """
    if not installation.deployment.app_config:
        raise CommandError(
            "this stage does not have AppConfig as its source",
            remedy="Its functions read the table, so each change acts within 10 seconds.",
        )
    require_confirmation(yes=yes)
    version = installation.configurator.read().version
    say(f"Deploy version {version} to AppConfig.")
    if not confirmed("Deploy it now?", yes=yes):
        return
    installation.configurator.deploy()
    if as_json:
        show_json({"version": version})
    else:
        show(f"version {version}")


@config.command("history")
@record_options
@json_option("Print each change as a line of JSON.")
@click.pass_obj
def history(
    installation: Installation, *, limit: int | None, since: datetime | None, before: datetime | None, as_json: bool
) -> None:
    """Show the last changes, the newest first."""
    all_changes = installation.configurator.history()
    in_time = takewhile(lambda change: since is None or change.at >= since, all_changes)
    changes = limited((change for change in in_time if before is None or change.at < before), limit=limit, since=since)
    if as_json:
        show_json_lines(map(_as_json, changes))
        return
    show_table(
        ("VERSION", "AT", "NAME", "VALUE", "UNTIL", "BY", "REASON"),
        [
            (
                str(change.version),
                readable_time(change.at),
                change.name,
                "removed" if change.removed else json.dumps(change.value),
                _until(change.until),
                change.by,
                change.reason,
            )
            for change in changes
        ],
        numbers=[0],
    )


def _as_json(change: Change) -> dict[str, Any]:
    return {
        "version": change.version,
        "at": timestamp(change.at),
        "name": change.name,
        "value": change.value,
        "removed": change.removed,
        "until": change.until and timestamp(change.until),
        "by": change.by,
        "reason": change.reason or None,
    }


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"{text!r} is not JSON: use true, 3, or a text in double quotes such as '\"blue\"' ({error})"
        raise click.UsageError(message) from error


def _shown(present: RuntimeConfiguration, name: str) -> str:
    setting = present.settings.get(name)
    return json.dumps(setting.value) if setting and setting.in_force(clock.now()) else _ABSENT


def _until(until: datetime | None) -> str:
    return DASH if until is None else readable_time(until)
