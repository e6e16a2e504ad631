"""Each alarm has its page in the runbook, and each page has all parts in one form."""

import re
import shlex
from typing import Final

import pytest

from demo.drills import runbook
from stacks.composition import ROOT
from tidemill.cdk.alarm import Heading

RUNBOOK: Final = (ROOT / "docs" / "operations" / "runbook.md").read_text(encoding="utf-8")
PAGES: Final = {runbook.anchor(title): page for title, page in re.findall(r"(?ms)^## (.+?)$(.*?)(?=^## |\Z)", RUNBOOK)}
#: The only page that no alarm links to.
SECURITY: Final = "security-incident"
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


def test_each_alarm_has_a_page_and_each_page_an_alarm() -> None:
    assert PAGES.keys() == {*Heading, SECURITY}


@pytest.mark.parametrize("page", PAGES.values(), ids=tuple(PAGES))
def test_a_page_has_all_parts(page: str) -> None:
    assert FORM.match(page), "a page has a meaning, the rows affected, first, verify and undo, and then what to decide"


@pytest.mark.parametrize("page", PAGES.values(), ids=tuple(PAGES))
def test_a_page_names_the_first_three_commands(page: str) -> None:
    found = FORM.match(page)
    assert found
    commands = re.findall(r"`([^`]+)`", found["first"])
    assert [shlex.split(command)[0] for command in commands] == ["tidemill"] * 3
    assert ", ".join(f"`{command}`" for command in commands) == found["first"]


@pytest.mark.parametrize("step", ["**Contain.**", "**Preserve.**", "**Recover.**"])
def test_the_page_of_a_security_incident_has_its_steps(step: str) -> None:
    assert step in PAGES[SECURITY]
