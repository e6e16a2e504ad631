"""docs/reference/cli.md matches the commands."""

import re
from pathlib import Path

from click.testing import CliRunner

from tidemill.cli.main import tidemill
from tools.cli_reference import updated

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
UPDATE = "the commands have changed; run python -m tools.cli_reference docs/reference/cli.md"


def test_the_reference_is_up_to_date() -> None:
    assert updated(REFERENCE.read_text()) == REFERENCE.read_text(), UPDATE


def test_no_line_of_help_is_truncated() -> None:
    assert not re.search(r"[a-z]\.\.\.$", REFERENCE.read_text(), re.MULTILINE)


def test_the_help_and_the_table_list_the_same_exit_codes() -> None:
    in_help = re.findall(r"^    (\d+) ", CliRunner().invoke(tidemill, ["--help"]).output, re.MULTILINE)
    assert in_help == re.findall(r"^\| (\d+) \|", REFERENCE.read_text(), re.MULTILINE)
