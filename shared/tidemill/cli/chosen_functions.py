"""The functions that a command on versions works on."""

from collections.abc import Sequence

import click

from tidemill.cli.errors import CommandError
from tidemill.cli.installation import Installation
from tidemill.operator.function_versions import FunctionVersions


def chosen_functions(installation: Installation, keys: Sequence[str] = ()) -> list[FunctionVersions]:
    """The functions with these keys, or all."""
    stacks = installation.function_stacks()
    known = {key for stack in stacks for key in stack.versions}
    if unknown := sorted(set(keys) - known):
        raise click.UsageError(f"unknown function {', '.join(unknown)}: use {', '.join(sorted(known))}")
    if not known:
        raise CommandError(
            "the stacks do not name the versions of their functions", remedy="Deploy the version of this command line."
        )
    return [each for each in installation.function_versions(stacks) if not keys or each.key in keys]


def require_no_deployment(installation: Installation) -> None:
    """Before a change of versions. Raises `CommandError` during a deployment."""
    for stack in installation.function_stacks():
        if stack.in_progress:
            raise CommandError(
                f"a deployment of {stack.name} goes on ({stack.status})",
                remedy=(
                    f"Cancel it with `aws cloudformation cancel-update-stack --stack-name {stack.name}`, or wait."
                    if stack.can_be_cancelled
                    else "It cannot be cancelled: wait until it has ended. "
                    f"`aws cloudformation describe-stack-events --stack-name {stack.name}` shows what it does."
                ),
            )
