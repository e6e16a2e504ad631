"""`tidemill versions prune`: delete old versions of the functions."""

import click

from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.deployments.chosen_functions import chosen_functions
from tidemill.cli.formatting import count
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import json_option, yes_option
from tidemill.cli.output import progress_bar, say, show, show_json
from tidemill.operator.deployments.function_versions import surplus


@click.command("prune")
@click.option(
    "--keep", default=10, show_default=True, type=click.IntRange(min=1), help="Older versions of each function to keep."
)
@click.option("--dry-run", is_flag=True, help="Show the number and change nothing.")
@yes_option
@json_option("Print the result as one JSON object.")
@click.pass_obj
def versions_prune(installation: Installation, *, keep: int, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete old versions of the functions.

    Each deployment adds a version of each function that it changes, and they share the account's storage for code. The
    deployed version, the one that runs and the newest --keep older ones stay, for `tidemill rollback`.
    """
    require_confirmation(yes=yes or dry_run, alternative=", or --dry-run to see the plan")
    old = [
        (function, version)
        for function in chosen_functions(installation, to_change=True)
        for version in surplus(function, keep=keep)
    ]
    deleted = 0
    if old and not dry_run:
        say(f"{count(len(old), 'old version')} of {count(len({function.key for function, _ in old}), 'function')}.")
        if not confirmed("Delete them?", yes=yes):
            return
        recorded = audited(installation, "versions prune", options={"keep": keep}, counts=lambda: {"versions": deleted})
        with recorded, progress_bar("versions", len(old)) as advance:
            for function, version in old:
                installation.delete_version(function, version.number)
                deleted += 1
                advance()
    if as_json:
        show_json({"dry_run": dry_run, "old_versions": len(old), "deleted": deleted})
    else:
        show(f"{count(len(old), 'old version')} to delete." if dry_run else f"{count(deleted, 'version')} deleted.")
