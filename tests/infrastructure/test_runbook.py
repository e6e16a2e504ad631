"""Each alarm has its page in the runbook, and each page has all parts in one form."""

import re
import shlex
from typing import Final

import pytest

from demo.drills import runbook
from stacks.composition import ROOT
from tidemill.cdk.alarms.alarm import Heading

RUNBOOK: Final = (ROOT / "docs" / "operations" / "runbook.md").read_text(encoding="utf-8")
PAGES: Final = {runbook.anchor(title): page for title, page in re.findall(r"(?ms)^## (.+?)$(.*?)(?=^## |\Z)", RUNBOOK)}
SECURITY: Final = "security-incident"
#: No alarm links to the last two.
WITH_FORM: Final = (*Heading, SECURITY, "slow-service")
#: Meaning, form and decision.
FORM: Final = re.compile(
    r"""\n\n\*(?P<meaning>[^*]+\.)\*\n\n
    \|\ \|\ \|\n\|---\|---\|\n
    \|\ affected\ \|\ (?P<affected>.+)\ \|\n
    \|\ first\ \|\ (?P<first>.+)\ \|\n
    \|\ verify\ \|\ (?P<verify>.+)\ \|\n
    \|\ undo\ \|\ (?P<undo>.+)\ \|\n
    \n(?P<decision>\S.+)""",
    re.VERBOSE,
)


@pytest.mark.parametrize("heading", WITH_FORM)
def test_each_alarm_has_a_page_with_all_parts(heading: str) -> None:
    assert FORM.match(PAGES[heading]), "a page has a meaning, four rows in their order, and then what to decide"


@pytest.mark.parametrize("heading", WITH_FORM)
def test_a_page_names_the_first_three_commands(heading: str) -> None:
    found = FORM.match(PAGES[heading])
    assert found
    commands = re.findall(r"`([^`]+)`", found["first"])
    assert [shlex.split(command)[0] for command in commands] == ["tidemill"] * 3
    assert ", ".join(f"`{command}`" for command in commands) == found["first"]


@pytest.mark.parametrize("step", ["**Contain.**", "**Preserve.**", "**Recover.**"])
def test_the_page_of_a_security_incident_has_its_steps(step: str) -> None:
    assert step in PAGES[SECURITY]
