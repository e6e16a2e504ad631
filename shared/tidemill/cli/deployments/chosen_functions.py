"""The functions that a command on versions works on."""

from collections.abc import Sequence

import click

from tidemill.cli.errors import CommandError
from tidemill.cli.installation import Installation
from tidemill.operator.deployments.deployment import FunctionStack
from tidemill.operator.deployments.function_versions import FunctionVersions


def chosen_functions(
    installation: Installation, keys: Sequence[str] = (), *, to_change: bool = False
) -> list[FunctionVersions]:
    """The functions with these keys, or all. With `to_change`, raises `CommandError` during a deployment."""
    stacks = installation.function_stacks()
    if to_change:
        _require_no_deployment(stacks)
    known = {key for stack in stacks for key in stack.versions}
    if unknown := sorted(set(keys) - known):
        raise click.UsageError(f"unknown function {', '.join(unknown)}: use {', '.join(sorted(known))}")
    if not known:
        raise CommandError(
            "the stacks do not name the versions of their functions", remedy="Deploy the version of this command line."
        )
    return [each for each in installation.function_versions(stacks) if not keys or each.key in keys]


def _require_no_deployment(stacks: Sequence[FunctionStack]) -> None:
    for stack in stacks:
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
