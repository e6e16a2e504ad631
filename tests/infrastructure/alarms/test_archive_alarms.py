"""A stage with an archive has alarms of it, and each fault of the archive fires its alarm within the bound."""

from datetime import timedelta

import pytest

from tests.infrastructure.alarms.faults import OF_THE_ARCHIVE, Fault
from tests.infrastructure.alarms.installation import Installation
from tests.infrastructure.alarms.test_faults import seconds_until
from tidemill.cdk.alarms.alarm import Severity


@pytest.mark.parametrize("fault", OF_THE_ARCHIVE, ids=lambda fault: f"{fault.alarm}: {fault.what}")
@pytest.mark.parametrize("additional_points", [0, 2, 5])
def test_each_ticket_of_the_archive_is_sent_within_its_bound(
    with_archive: Installation, fault: Fault, additional_points: int
) -> None:
    seconds = seconds_until(with_archive, fault, fault.alarm, additional_points=additional_points)
    assert timedelta(seconds=seconds) <= with_archive.entries[fault.alarm].within


def test_only_a_stage_with_an_archive_has_these_alarms(installation: Installation, with_archive: Installation) -> None:
    added = {name: with_archive.entries[name].severity for name in with_archive.entries.keys() - installation.entries}
    assert added == {fault.alarm: Severity.TICKET for fault in OF_THE_ARCHIVE}
