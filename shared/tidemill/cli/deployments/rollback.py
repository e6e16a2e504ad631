"""`tidemill rollback`: go back to the versions of the functions before the last deployment, without a deployment."""

from collections.abc import Sequence
from typing import Any

import click

from tidemill.cli.control.change_options import ChangeOptions, change_options
from tidemill.cli.deployments.chosen_functions import chosen_functions
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import DASH, count, readable_time
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.output import say, show, show_json, show_table
from tidemill.operator.deployments import rollback_plan
from tidemill.operator.deployments.alias_moves import AliasesChangedError
from tidemill.operator.deployments.rollback_plan import Move


@click.command()
@click.argument("functions", metavar="[FUNCTION]...", nargs=-1)
@click.option("--to", "code", metavar="VERSION", help="The version of the code, as in log lines and `dlq summary`.")
@click.option("--forward", is_flag=True, help="End a rollback: return to the deployed versions.")
@change_options(
    reason="Why, for the audit log.",
    dry_run="Show the plan and change nothing.",
    json="Print the result as one JSON object.",
)
@click.pass_obj
def rollback(
    installation: Installation,
    functions: tuple[str, ...],
    code: str | None,
    *,
    forward: bool,
    how: ChangeOptions,
) -> None:
    """Run the versions from before the last deployment.

    It moves every function that the last deployment changed, or each named FUNCTION (such as submit or work-bulk) to
    the version before its last one, within seconds. If one function cannot be moved, none is. A version that an earlier
    rollback left is not chosen again.

    A version has code, environment, timeout and memory. Rights, queues, schedules, alarms and tables stay as deployed.
    Refuses to return to a version with another jobs table, or with another epoch of it, from before a restore.

    A rollback lasts until a deployment changes the function: deploy the fix. `tidemill status` shows it until then.
    """
    if code and forward:
        raise click.UsageError("--to and --forward exclude each other")
    how.require_confirmation()
    moves = [move for move in _plan(installation, functions, code, forward=forward) if move.needed]
    _refuse_another_table(moves)
    result: dict[str, Any] = {"dry_run": how.dry_run, "moves": [_as_json(move) for move in moves]}
    if not moves or how.dry_run:
        show_json(result) if how.as_json else _show(moves, stderr=False)
        return
    _show(moves, stderr=True)
    if not how.confirmed(f"Move {count(len(moves), 'function')} to these versions?"):
        return
    moved: list[Move] = []
    options = {"moves": [str(move) for move in moves]}
    with audited(
        installation,
        rollback_plan.COMMAND,
        options=options,
        counts=lambda: {"functions": len(moved)},
        reason=how.reason,
    ):
        try:
            installation.move_versions(moves)
        except AliasesChangedError as error:
            raise CommandError(
                "no function was moved: another command or a deployment moved one",
                remedy="Run the command again; it makes a new plan.",
            ) from error
        moved += moves
    if how.as_json:
        show_json(result)
    else:
        show(f"{count(len(moves), 'function')} moved.")
    if not forward:
        say("Deploy the fix. To return to the deployed versions without one: tidemill rollback --forward")


def _plan(installation: Installation, keys: tuple[str, ...], code: str | None, *, forward: bool) -> list[Move]:
    functions = chosen_functions(installation, keys, to_change=True)
    if forward:
        return rollback_plan.forward(functions)
    if code:
        moves = rollback_plan.to_code(functions, code)
        if lacking := {each.key for each in functions} - {move.function.key for move in moves}:
            raise CommandError(
                f"no version with the code {code}: {', '.join(sorted(lacking))}",
                remedy="Name the functions that have one, or another version of the code.",
            )
        return moves
    # Read the entries of the whole time of these versions: any number of other commands may follow a rollback.
    oldest = min((version.published_at for each in functions for version in each.versions.values()), default=None)
    withdrawn = rollback_plan.withdrawn(installation.audit_log.entries(since=oldest))
    if not keys:
        return rollback_plan.before_last_deployment(functions, withdrawn)
    moves = rollback_plan.before_own_deployment(functions, withdrawn)
    if lacking := set(keys) - {move.function.key for move in moves}:
        raise CommandError(
            f"no earlier version to return to: {', '.join(sorted(lacking))}",
            remedy="Leave them out, or name a version with --to.",
        )
    return moves


def _refuse_another_table(moves: Sequence[Move]) -> None:
    """A function of the table from before would write to it, and give back the messages of the table in use."""
    if across := [move for move in moves if move.across_restore]:
        named = ", ".join(f"{move.function.key} {move.to.number}" for move in across)
        first = across[0].to
        raise CommandError(
            f"versions from before a restore have the jobs table {first.table} of epoch {first.epoch}, "
            f"which is not the one in use: {named}",
            remedy="Deploy a fix, or name a version from after the restore with --to.",
        )


def _show(moves: Sequence[Move], *, stderr: bool) -> None:
    if not moves:
        show("Every function runs that version already, or has no earlier one. Nothing to move.")
        return
    rows = [
        (
            move.function.key,
            f"{move.function.live} ({_code_of(move)})",
            f"{move.to.number} ({move.to.code or DASH})",
            readable_time(move.to.published_at),
        )
        for move in moves
    ]
    show_table(("FUNCTION", "FROM (CODE)", "TO (CODE)", "PUBLISHED"), rows, stderr=stderr)


def _code_of(move: Move) -> str:
    present = move.function.versions.get(move.function.live)
    return present.code if present and present.code else DASH


def _as_json(move: Move) -> dict[str, Any]:
    return {
        "function": move.function.key,
        "from": move.function.live,
        "to": move.to.number,
        "code": move.to.code or None,
    }
