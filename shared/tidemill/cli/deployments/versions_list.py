"""`tidemill versions list`: the versions of the functions, and which of them run."""

from typing import Any

import click

from tidemill.cli.deployments.chosen_functions import chosen_functions
from tidemill.cli.formatting import DASH, readable_time, timestamp
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show_json_lines, show_table
from tidemill.operator.deployments.function_versions import FunctionVersions, Version


@click.command("list")
@click.argument("functions", metavar="[FUNCTION]...", nargs=-1)
@json_option("Print each version as a line of JSON.")
@click.pass_obj
def versions_list(installation: Installation, functions: tuple[str, ...], *, as_json: bool) -> None:
    """List the versions of the functions, the newest of each first.

    CODE is the version of the code, which `tidemill rollback --to` takes.
    """
    found = [
        (function, function.versions[number])
        for function in sorted(chosen_functions(installation, functions), key=lambda each: each.key)
        for number in sorted(function.versions, reverse=True)
    ]
    if as_json:
        show_json_lines(_as_json(function, version) for function, version in found)
        return
    rows = [
        (
            function.key,
            str(version.number),
            version.code or DASH,
            readable_time(version.published_at),
            ", ".join(_state(function, version)),
        )
        for function, version in found
    ]
    show_table(("FUNCTION", "VERSION", "CODE", "PUBLISHED", ""), rows, numbers=[1])


def _state(function: FunctionVersions, version: Version) -> list[str]:
    numbers = {"runs": function.live, "deployed": function.deployed}
    return [name for name, number in numbers.items() if number == version.number]


def _as_json(function: FunctionVersions, version: Version) -> dict[str, Any]:
    return {
        "function": function.key,
        "version": version.number,
        "code": version.code or None,
        "published_at": timestamp(version.published_at),
        "runs": version.number == function.live,
        "deployed": version.number == function.deployed,
    }
