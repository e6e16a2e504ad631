"""The runtime configuration in the jobs table: conditional changes, their history, and flags in a handler."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.deployed_functions import Mill
from tests.support.faulty_client import Fault
from tests.support.job_tables import Table
from tidemill import composition
from tidemill.application.configuration import Configurator
from tidemill.domain.errors import ConfigurationConflictError, StoreUnavailableError
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.names import CONFIGURATION_KEY, JOB_KEY


def configurator(mill: Mill) -> Configurator:
    store = DynamoConfiguration(mill.client, table=mill.table.name)  # type: ignore[arg-type]  # a proxy
    return Configurator(store=store, clock=mill.now)


def set_flag(mill: Mill, name: str, value: object) -> RuntimeConfiguration:
    changes = configurator(mill)
    return changes.set(changes.read(), f"flags.{name}", value, by="arn:ops", reason="a test")


def test_a_configuration_that_was_never_set_is_empty(mill: Mill) -> None:
    assert configurator(mill).read() == RuntimeConfiguration()
    assert list(configurator(mill).history()) == []


def test_each_change_is_in_the_history_the_newest_first(mill: Mill) -> None:
    mill.stop_clock()
    changes = configurator(mill)
    set_flag(mill, "a", {"n": 1})
    ending = mill.now() + SECOND
    last = changes.set(changes.read(), "flags.b", None, by="arn:b", reason="", until=ending)
    changes.remove(last, "flags.a", by="arn:c", reason="done")

    history = list(changes.history())
    assert [(one.version, one.name, one.value, one.removed, one.by, one.reason) for one in history] == [
        (3, "flags.a", None, True, "arn:c", "done"),
        (2, "flags.b", None, False, "arn:b", ""),
        (1, "flags.a", {"n": 1}, False, "arn:ops", "a test"),
    ]
    assert [one.until is None for one in history] == [True, False, True]
    assert abs((history[1].until or NOW) - ending) < timedelta(milliseconds=1)
    assert [one.at for one in history] == sorted(one.at for one in history)


@pytest.mark.parametrize("earlier", [0, 1])
def test_one_of_two_operators_at_once_gets_a_conflict(mill: Mill, earlier: int) -> None:
    for number in range(earlier):
        set_flag(mill, "earlier", number)
    changes = configurator(mill)
    seen = changes.read()
    set_flag(mill, "a", 1)

    with pytest.raises(ConfigurationConflictError, match="another operator has changed"):
        changes.set(seen, "flags.b", 2, by="arn:late", reason="")
    assert configurator(mill).read().flags(mill.now()).keys() - {"earlier"} == {"a"}
    assert "arn:late" not in {one.by for one in changes.history()}


def test_a_change_in_conflict_with_another_transaction_says_that_nothing_was_changed(mill: Mill) -> None:
    mill.client.faults = [Fault.IN_CONFLICT]

    with pytest.raises(ConfigurationConflictError, match="at this moment, or the table throttles: nothing was changed"):
        set_flag(mill, "a", 1)
    assert configurator(mill).read().version == 0


def test_a_change_that_the_sdk_sends_twice_counts_once(mill: Mill) -> None:
    mill.client.faults = [Fault.ANSWER_LOST]
    with pytest.raises(StoreUnavailableError):
        set_flag(mill, "a", 1)

    assert configurator(mill).read().version == 1
    assert len(list(configurator(mill).history())) == 1


def test_a_handler_reads_the_flags_anew_after_five_seconds(mill: Mill) -> None:
    mill.stop_clock()
    seen: list[object] = []
    mill.script.handler = lambda _payload, run: seen.append(run.flags.get("colour"))
    for value in ("blue", "red"):
        set_flag(mill, "colour", value)
        mill.accepted()
        mill.run()
    mill.late += 5 * SECOND
    mill.accepted()
    mill.run()

    assert seen == ["blue", "blue", "red"]


def test_a_wrong_document_stops_no_job_and_is_reported(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    mill.stop_clock()
    seen: list[object] = []
    mill.script.handler = lambda _payload, run: seen.append(dict(run.flags))
    mill.table.client.put_item(TableName=mill.table.name, Item={JOB_KEY: {"S": CONFIGURATION_KEY}})
    mill.accepted()
    mill.run()

    assert seen == [{}]
    assert "runtime configuration not read" in capsys.readouterr().out


def test_no_change_reaches_publish(mill: Mill) -> None:
    set_flag(mill, "a", 1)

    assert mill.records() == []


def test_the_configuration_survives_a_new_environment(mill: Mill, table: Table) -> None:
    set_flag(mill, "a", 1)
    vars(composition.parts()).pop("configuration", None)

    assert composition.parts().configuration.current().flags(mill.now()) == {"a": 1}
    assert table is mill.table
