"""The record of a recovery: of two operators at once, the second one goes on with what the first one has begun."""

import pytest

from tests.support.builders import NOW
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.restore.recover import Recovery
from tidemill.domain.errors import ConfigurationConflictError
from tidemill.domain.records import replace
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog

FIRST = Recovery(epoch=1, table="restored", began_at=NOW, replaces="jobs")
SECOND = Recovery(epoch=2, table="restored-again", began_at=NOW, replaces="restored")


@pytest.fixture
def log(client: FaultyClient, table: Table) -> DynamoRecoveryLog:
    return DynamoRecoveryLog(client, table=table.name)  # type: ignore[arg-type]  # it passes every call


def test_a_recovery_is_read_as_it_was_written(log: DynamoRecoveryLog) -> None:
    assert log.read() is None
    log.write(FIRST, seen=None)
    assert log.read() == FIRST
    log.write(SECOND, seen=FIRST)
    assert log.read() == SECOND


@pytest.mark.parametrize("seen", [None, replace(FIRST, epoch=0), replace(FIRST, table="other")])
def test_another_recovery_since_the_read_is_a_conflict(log: DynamoRecoveryLog, seen: Recovery | None) -> None:
    log.write(FIRST, seen=None)
    with pytest.raises(ConfigurationConflictError):
        log.write(SECOND, seen=seen)
    assert log.read() == FIRST


@pytest.mark.parametrize("seen", [None, FIRST])
def test_a_write_that_the_sdk_sent_twice_succeeds(
    log: DynamoRecoveryLog, client: FaultyClient, seen: Recovery | None
) -> None:
    if seen:
        log.write(seen, seen=None)
    client.faults = [Fault.SENT_TWICE]
    log.write(SECOND, seen=seen)
    assert log.read() == SECOND
