"""The corrections that the launcher makes to the emulator, without starting one."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.local import launcher


def test_functions_do_not_see_the_settings_of_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_PORT", "4566")
    monkeypatch.setenv("LOG_LEVEL", "INFO")
    runtime = SimpleNamespace(subprocess=subprocess)
    launcher.keep_settings_from_functions(runtime, frozenset(("GATEWAY_PORT", "LOG_LEVEL")))
    child = runtime.subprocess.Popen(
        [sys.executable, "-c", "import os; print(os.environ.get('GATEWAY_PORT'), os.environ['LOG_LEVEL'])"],
        env={**os.environ, "LOG_LEVEL": "the function's own"},
        stdout=runtime.subprocess.PIPE,
        text=True,
    )
    assert child.communicate()[0] == "None the function's own\n"


def test_a_worker_is_marked_as_busy_while_it_runs_an_invocation(tmp_path: Path) -> None:
    seen: list[bool] = []

    class Worker:
        _proc: object = None
        _tmpdir = str(tmp_path)

        def _spawn(self) -> None:
            self._proc = object()

        def invoke(self, event: str) -> str:
            if not self._proc:
                self._spawn()
            seen.append((tmp_path / launcher.BUSY).exists())
            return event

    launcher.mark_busy_workers(Worker)
    worker = Worker()
    assert [worker.invoke("cold"), worker.invoke("warm")] == ["cold", "warm"]
    assert seen == [True, True]
    assert not (tmp_path / launcher.BUSY).exists()


def test_a_cold_start_has_more_time_than_its_function_and_later_invocations_have_not() -> None:
    timeouts = list[tuple[str, int]]()

    class Worker:
        def __init__(self) -> None:
            self.config = {"Timeout": 3}
            self._proc: Any = None

        def invoke(self, event: str) -> str:
            timeouts.append((event, self.config["Timeout"]))
            return event

    def ensure_spawned(worker: Any) -> None:
        timeouts.append(("spawned", worker.config["Timeout"]))
        worker._proc = SimpleNamespace(poll=lambda: None)

    launcher.give_cold_starts_time(SimpleNamespace(Worker=Worker, ensure_spawned=ensure_spawned))
    worker = Worker()

    assert [worker.invoke("cold"), worker.invoke("warm")] == ["cold", "warm"]
    assert timeouts == [("spawned", 3), ("cold", launcher.COLD_START_SECONDS), ("warm", 3)]


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        pytest.param({"sent_at": 90.0, "visible_at": 90.0, "receive_count": 0}, (1, 0, 0, 10), id="waiting"),
        pytest.param({"sent_at": 90.0, "visible_at": 130.0, "receive_count": 2}, (0, 1, 0, 10), id="in flight"),
        pytest.param({"sent_at": 90.0, "visible_at": 130.0, "receive_count": 0}, (0, 0, 1, 10), id="delayed"),
    ],
)
def test_a_message_is_counted_where_aws_counts_it(message: dict[str, Any], figures: tuple[int, ...]) -> None:
    assert tuple(value for value, _ in launcher.queue_figures([message], now=100.0).values()) == figures


def test_an_empty_queue_has_no_age() -> None:
    assert set(launcher.queue_figures([], now=100.0).values()) == {(0, "Count"), (0.0, "Seconds")}


class _Store:
    """The parts of the emulator's DynamoDB that the launcher changes. It applies each write."""

    def __init__(self, most: int | None) -> None:
        self.written: list[dict[str, Any]] = []
        self._tables = {"jobs": {"OnDemandThroughput": {"MaxWriteRequestUnits": most}} if most is not None else {}}
        self._put_item = self._update_item = self._delete_item = self._transact_write_items = self.written.append

    def error_response_json(self, code: str, *_: object) -> str:
        return code


@pytest.mark.parametrize(("most", "applied"), [(None, 3), (-1, 3), (2, 2)])
def test_a_table_takes_no_more_writes_in_a_second_than_its_maximum(
    most: int | None, applied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _Store(most)
    launcher.throttle_writes(store)
    monkeypatch.setattr(time, "time", lambda: 100.0)
    answers = [
        store._put_item({"TableName": "jobs"}),
        store._update_item({"TableName": "arn:aws:dynamodb:us-east-1:000000000000:table/jobs"}),
        store._transact_write_items({"TransactItems": [{"Put": {"TableName": "jobs"}}]}),
    ]
    assert len(store.written) == applied
    assert answers == [None] * applied + ["ThrottlingException"] * (3 - applied)

    monkeypatch.setattr(time, "time", lambda: 101.0)
    assert store._put_item({"TableName": "jobs"}) is None
    assert store._put_item({"TableName": "another"}) is None


def test_a_new_table_has_the_ttl_and_the_recovery_of_its_template() -> None:
    called: list[dict[str, Any]] = []
    dynamodb = SimpleNamespace(_update_ttl=called.append, _update_continuous_backups=called.append)
    handlers: dict[str, Any] = {"create": lambda logical_id, _properties, stack: (f"{stack}-{logical_id}", {})}
    launcher.deploy_table_settings(handlers, dynamodb)
    properties = {
        "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    }

    assert handlers["create"]("Jobs", properties, "stack") == ("stack-Jobs", {})
    assert handlers["create"]("Plain", {}, "stack") == ("stack-Plain", {})

    assert called == [{"TableName": "stack-Jobs", name: value} for name, value in properties.items()]


class _Statements:
    """The parts of the emulator's DynamoDB that apply statements. The first is applied, and the second is refused."""

    def __init__(self) -> None:
        self.records: list[tuple[object, ...]] = []
        self._emit_stream_event = lambda *record: self.records.append(record)
        self._statuses = iter([200, 400])

    def _partiql_key_target(self, *_: object) -> tuple[str, str, None, None]:
        return "a", "", None, None

    def _partiql_insert(self, table: Any, parsed: Any) -> tuple[int]:
        return self._applied(table, parsed)

    def _partiql_update(self, table: Any, parsed: Any, _data: object = None) -> tuple[int]:
        return self._applied(table, parsed)

    def _applied(self, table: Any, parsed: Any) -> tuple[int]:
        status = next(self._statuses)
        if status == 200:
            table["items"]["a"] = {"": parsed["item"]}
        return (status,)


@pytest.mark.parametrize(("kind", "event", "before"), [("insert", "INSERT", None), ("update", "MODIFY", {"n": 1})])
def test_a_statement_that_is_applied_has_a_record(kind: str, event: str, before: object) -> None:
    dynamodb = _Statements()
    launcher.record_statements(dynamodb)
    table: dict[str, Any] = {"TableName": "jobs", "items": {"a": {"": {"n": 1}}}}

    for number in (2, 3):
        getattr(dynamodb, f"_partiql_{kind}")(table, {"item": {"n": number}})

    assert dynamodb.records == [("jobs", event, before, {"n": 2})]
