"""Each drill names an alarm of the catalogue, with its heading of the runbook, and pages that are pages."""

import pytest

from demo.drills import speed
from demo.drills.drill import Drill
from demo.drills.incidents import DRILLS
from tests.infrastructure.alarms.installation import Installation
from tidemill.cdk.alarms import alarm_catalogue
from tidemill.cdk.alarms.alarm import Severity


@pytest.mark.parametrize("drill", DRILLS.values(), ids=tuple(DRILLS))
def test_the_alarm_of_a_drill_leads_to_the_page_that_it_reads(drill: type[Drill], installation: Installation) -> None:
    assert drill.alarm is None or installation.entries[drill.alarm].heading == drill.heading
    assert all(installation.entries[page].severity is Severity.PAGE for page in drill.pages)


def test_a_drill_asks_of_the_machine_what_the_alarm_on_late_canaries_asks() -> None:
    assert speed.SILENT_MINUTES == alarm_catalogue.SILENT_MINUTES
