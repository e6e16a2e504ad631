"""What holds for every command: `--json`, the documented exit codes, completion in a shell."""

import re
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from stacks.composition import ROOT
from tidemill.cli import errors
from tidemill.cli.explain import watch
from tidemill.cli.main import tidemill

REFERENCE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


def _commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield path + name, command


COMMANDS = dict(_commands(tidemill))


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"top"}))
def test_every_command_can_print_json(name: str) -> None:
    """`top` is a live display of `status --json`."""
    assert "as_json" in {parameter.name for parameter in COMMANDS[name].params}


def _codes(text: str, pattern: str) -> list[int]:
    return [int(code) for code in re.findall(pattern, text, re.MULTILINE)]


def test_the_exit_codes_are_documented() -> None:
    used = {0, errors.FAILED, 2, watch.DIED, watch.ENDED_WITHOUT_SUCCESS, errors.INTERRUPTED, errors.PIPE_CLOSED}
    section = REFERENCE.partition("## Exit codes")[2].partition("\n## ")[0]
    assert set(_codes(section, r"^\| (\d+) \|")) == used
    assert set(_codes(str(tidemill.epilog), r"^ +(\d+) ")) == used


def test_a_shell_completes_commands_and_options() -> None:
    complete = BashComplete(tidemill, {}, "tidemill", "_TIDEMILL_COMPLETE")
    assert [item.value for item in complete.get_completions(["dlq"], "s")] == ["show", "summary", "sweep"]
    assert "--all-tenants" in [item.value for item in complete.get_completions(["list"], "--all")]
    for shell in ("bash", "zsh"):
        result = CliRunner().invoke(tidemill, env={"_TIDEMILL_COMPLETE": f"{shell}_source"}, prog_name="tidemill")
        assert result.exit_code == 0
        assert "_tidemill_completion" in result.stdout
        assert f'eval "$(_TIDEMILL_COMPLETE={shell}_source tidemill)"' in REFERENCE
