"""The settings in the table: each change follows the one that was read, and the history has all of them."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.errors import ConfigurationConflictError
from tidemill.domain.limits.limits import Rate
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, Change, RuntimeConfiguration
from tidemill.domain.waiting.pauses import Drain
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration

LINE = Line.for_pause("type=mail")
DRAIN = Drain(line=LINE, rate=Rate(count=10, period=SECOND), ends_at=NOW + SECOND)


@pytest.fixture
def settings(client: FaultyClient, table: Table) -> DynamoConfiguration:
    return DynamoConfiguration(client, table=table.name)  # type: ignore[arg-type]  # a proxy


def a_change(version: int, **changes: Any) -> Change:
    fields: dict[str, Any] = {"name": "flags.a", "at": NOW, "by": "ada", "reason": "why", "value": version} | changes
    return Change(version=version, **fields)


def written(settings: DynamoConfiguration, change: Change, drain: Drain | None = None) -> RuntimeConfiguration:
    after = RuntimeConfiguration(version=change.version, document={"settings": [change.value]})
    settings.write(after, change, drain)
    return after


def test_without_a_change_nothing_is_set(settings: DynamoConfiguration) -> None:
    assert (settings.read(), settings.acting(), list(settings.history())) == (NOTHING_SET, NOTHING_SET, [])


def test_each_change_is_read_and_stays_in_the_history(settings: DynamoConfiguration) -> None:
    changes = [
        a_change(1, value={"off": True}),
        a_change(2, value=None),
        a_change(3, value=None, removed=True),
        a_change(4, value=False, until=NOW + timedelta(hours=1)),
        a_change(5, name="pauses.type=mail", by="eve", reason="", at=NOW + SECOND),
    ]

    for change in changes:
        assert written(settings, change) == settings.read(consistent=True)

    assert list(settings.history()) == changes[::-1]


@pytest.mark.parametrize("version", [1, 2, 3, 5])
def test_a_change_of_another_version_than_was_read_is_a_conflict_and_changes_nothing(
    settings: DynamoConfiguration, version: int
) -> None:
    for each in (1, 2, 3):
        written(settings, a_change(each))
    before = settings.read(consistent=True), list(settings.history())

    with pytest.raises(ConfigurationConflictError):
        written(settings, a_change(version, by="eve"), DRAIN)

    assert (settings.read(consistent=True), list(settings.history())) == before


def test_the_first_change_is_made_once(settings: DynamoConfiguration) -> None:
    with pytest.raises(ConfigurationConflictError):
        written(settings, a_change(2))
    assert settings.read(consistent=True) == NOTHING_SET
    written(settings, a_change(1))
    with pytest.raises(ConfigurationConflictError):
        written(settings, a_change(1, by="eve"))

    (change,) = settings.history()
    assert change.by == "ada"


@pytest.mark.parametrize("drain", [None, DRAIN])
def test_the_line_of_a_pause_is_listed_with_its_change(
    settings: DynamoConfiguration, table: Table, drain: Drain | None
) -> None:
    written(settings, a_change(1), drain)

    assert list(DynamoLimits(table.client, table=table.name).lines()) == ([LINE] if drain else [])
