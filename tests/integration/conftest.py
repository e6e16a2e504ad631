"""The functions between moto's DynamoDB and SQS."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.batch_calls import patient_calls
from tests.support.correction_story import Story
from tests.support.deployed_functions import Mill, mill_on
from tests.support.exported_spans import Exported, exported_spans
from tests.support.job_tables import Table
from tests.support.jobs.batched import BatchScript
from tests.support.patience import PATIENCE_SECONDS
from tidemill.worker import message_batch


@pytest.fixture
def mill(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mill]:
    with mill_on(table, monkeypatch) as mill:
        yield mill


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A settle after the timeout of its job may take as long as it takes."""
    monkeypatch.setattr(message_batch, "SETTLE_RESERVE", timedelta(seconds=PATIENCE_SECONDS))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> BatchScript:
    """The calls of batch handlers, and the script of them."""
    return patient_calls(monkeypatch)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Handlers wait for it. It opens at the end of the test."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def exported(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    with exported_spans(monkeypatch) as exported:
        yield exported


@pytest.fixture
def story(mill: Mill) -> Story:
    return Story(mill)
