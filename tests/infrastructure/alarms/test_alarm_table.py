"""The table of docs/operations/alarms.md shows what the tests measure. A failure prints the table as it must be."""

import re
from typing import Final

from stacks.composition import ROOT
from tests.infrastructure.alarms.faults import OF_THE_ARCHIVE, PAGES, TICKETS, Fault
from tests.infrastructure.alarms.installation import Installation
from tests.infrastructure.alarms.test_faults import seconds_until
from tidemill.cdk.alarms.alarm import Alarm

PAGE_OF_ALARMS: Final = ROOT / "docs" / "operations" / "alarms.md"


def _row(installation: Installation, fault: Fault) -> str:
    entry = installation.entries[fault.alarm]
    m_of_n = "{} of {}".format(*entry.m_of_n) if isinstance(entry, Alarm) else "composite"
    seconds = seconds_until(installation, fault, fault.alarm)
    cells = (
        fault.alarm,
        entry.severity,
        m_of_n,
        fault.what,
        f"{seconds:,}",
        f"{entry.within.total_seconds():,.0f}",
        f"[{entry.heading}](runbook.md#{entry.heading})",
    )
    return f"| {' | '.join(cells)} |"


def test_the_table_of_alarms_shows_what_was_measured(installation: Installation, with_archive: Installation) -> None:
    expected = [_row(installation, fault) for fault in (*PAGES, *TICKETS)]
    expected += [_row(with_archive, fault) for fault in OF_THE_ARCHIVE]
    shown = re.findall(r"(?m)^\| \w+ \| (?:page|ticket) \|.*$", PAGE_OF_ALARMS.read_text())
    assert shown == expected, "the table must be:\n" + "\n".join(expected)


def test_the_sum_of_prices_is_that_of_the_template(installation: Installation) -> None:
    metrics = sum(len(alarm.queries) for alarm in installation.alarms if hasattr(alarm, "queries"))
    composites = sum(not hasattr(alarm, "queries") for alarm in installation.alarms)
    price = f"{len(installation.alarms) - composites} alarms on {metrics} metrics and {composites} composites"
    assert price in re.sub(r"\s+", " ", PAGE_OF_ALARMS.read_text())
    assert f"${metrics * 0.1 + composites * 0.5:.2f} a month" in PAGE_OF_ALARMS.read_text()
