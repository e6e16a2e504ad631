"""Both stores of the runtime configuration: the jobs table alone, and with a copy in AppConfig."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from tests.support.builders import SECOND
from tests.support.deployed_functions import Mill
from tests.support.fake_app_config import MOST_VERSIONS, FakeAppConfig
from tidemill import composition
from tidemill.application.configuration import CachedConfiguration, ConfigurationStore, Configurator
from tidemill.aws import clients
from tidemill.domain.errors import ConfigurationConflictError, StoreUnavailableError
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.names import Env, Lane
from tidemill.powertools.app_config import POLL_INTERVAL, AppConfigConfiguration, Place

PLACE = Place(application="app1", environment="env1", profile="pro1", strategy="str1")


@dataclass
class World:
    mill: Mill
    aws: FakeAppConfig = field(default_factory=FakeAppConfig)
    pauses: list[float] = field(default_factory=list)

    @property
    def record(self) -> DynamoConfiguration:
        return DynamoConfiguration(self.mill.client, table=self.mill.table.name)  # type: ignore[arg-type]  # a proxy

    def copied(self, table: str = "", record: ConfigurationStore | None = None) -> AppConfigConfiguration:
        """A store of one execution environment."""
        return AppConfigConfiguration(
            record or self.record,
            place=PLACE,
            table=table or self.mill.table.name,
            reader=self.aws,
            writer=lambda: self.aws,
            pause=self.pauses.append,
        )

    def set(self, store: ConfigurationStore, name: str, value: object) -> int:
        operator = Configurator(store=store, clock=self.mill.now)
        return operator.set(operator.read(), f"flags.{name}", value, by="arn:ops", reason="a test").version


@pytest.fixture
def world(mill: Mill) -> World:
    return World(mill)


STORES: list[Callable[[World], ConfigurationStore]] = [lambda world: world.record, lambda world: world.copied()]


@pytest.mark.parametrize("make", STORES, ids=["table", "appconfig"])
def test_each_store_gives_the_functions_each_change_and_keeps_its_record(
    world: World, make: Callable[[World], ConfigurationStore]
) -> None:
    store, functions = make(world), make(world)
    assert (store.read().version, store.read(consistent=True).version) == (0, 0)
    for value in (1, 2):
        world.set(store, "a", value)
        assert functions.read().flags(world.mill.now()) == {"a": value}
        assert functions.read() == functions.read() == store.read(consistent=True)

    assert [(one.version, one.value, one.by, one.reason) for one in store.history()] == [
        (2, 2, "arn:ops", "a test"),
        (1, 1, "arn:ops", "a test"),
    ]


@pytest.mark.parametrize("make", STORES, ids=["table", "appconfig"])
def test_in_each_store_one_of_two_operators_gets_a_conflict(
    world: World, make: Callable[[World], ConfigurationStore]
) -> None:
    store = make(world)
    operator = Configurator(store=store, clock=world.mill.now)
    seen = operator.read()
    world.set(store, "a", 1)

    with pytest.raises(ConfigurationConflictError):
        operator.set(seen, "flags.b", 2, by="arn:late", reason="")
    assert make(world).read().flags(world.mill.now()) == {"a": 1}


@pytest.mark.parametrize("code", ["InternalServerException", "AccessDeniedException"])
def test_while_appconfig_fails_the_last_known_values_hold_and_a_new_session_follows(world: World, code: str) -> None:
    world.mill.stop_clock()
    failures: list[Exception] = []
    world.set(world.copied(), "a", 1)
    cached = CachedConfiguration(world.copied().read, clock=world.mill.now, failed=failures.append, lasts=POLL_INTERVAL)
    assert cached.current().version == 1
    world.set(world.copied(), "a", 2)
    world.aws.poll_errors = [code]

    world.mill.late += POLL_INTERVAL
    assert [cached.current().version for _ in range(3)] == [1, 1, 1]
    assert [type(one) for one in failures] == [StoreUnavailableError]
    world.mill.late += POLL_INTERVAL
    assert cached.current().version == 2


def fails(error: Exception) -> None:
    raise error


def test_appconfig_is_polled_at_most_each_fifteen_seconds_and_a_change_acts_within_sixty(world: World) -> None:
    world.mill.stop_clock()
    world.set(world.copied(), "a", 1)
    cached = CachedConfiguration(world.copied().read, clock=world.mill.now, failed=fails, lasts=POLL_INTERVAL)
    for _ in range(60):
        cached.current()
        world.mill.late += SECOND

    # A session costs a call, and its first poll the whole configuration.
    assert (world.aws.polls, world.aws.sessions) == (3, 1)
    assert timedelta(seconds=15) <= POLL_INTERVAL <= timedelta(seconds=45)


@pytest.mark.parametrize("consistent", [False, True], ids=["copy", "record"])
def test_the_times_of_a_paused_schedule_begin_and_end_when_each_function_has_polled(
    world: World, consistent: bool
) -> None:
    """Otherwise the job that makes up for all of them may start before the pause, by a worker that knows of none."""
    world.mill.stop_clock()
    operator = Configurator(store=world.copied(), clock=world.mill.now)
    begin = world.mill.now()
    operator.set(operator.read(), "pauses.schedule=t", {}, by="arn:ops", reason="")
    world.mill.late += timedelta(hours=1)
    end = world.mill.now()

    def is_paused(at: datetime) -> bool:
        known = world.copied().read(consistent=consistent)
        return known.pause_of_schedule("t", Lane.BULK, scheduled=at) is not None

    paused = [is_paused(begin + after * SECOND) for after in (59, 60)]
    operator.remove(operator.read(), "pauses.schedule=t", by="arn:ops", reason="")
    paused += [is_paused(end + after * SECOND) for after in (59, 60)]

    assert paused == [False, True, True, False]


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_until_appconfig_has_answered_once_the_functions_read_the_table(world: World, code: str) -> None:
    world.set(world.record, "a", 1)
    world.aws.poll_errors = [code]

    assert world.copied().read().version == 1


@pytest.mark.parametrize("code", ["InternalServerException", "AccessDeniedException"])
def test_what_acts_is_never_answered_from_the_record_while_appconfig_fails(world: World, code: str) -> None:
    world.set(world.copied(), "a", 1)
    world.aws.poll_errors = [code]
    store = world.copied()

    with pytest.raises(StoreUnavailableError):
        store.acting()
    assert store.acting().version == 1


def test_before_anything_is_deployed_the_record_acts(world: World) -> None:
    assert world.copied().acting().version == 0
    world.set(world.record, "a", 1)
    assert world.copied().acting().version == 1


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_what_acts_and_what_an_operator_reads_is_the_record_of_this_moment(world: World, code: str) -> None:
    """Functions may read a copy, which costs half."""
    reads: list[bool] = []

    class Record(DynamoConfiguration):
        def read(self, *, consistent: bool = False) -> RuntimeConfiguration:
            reads.append(consistent)
            return super().read(consistent=consistent)

    record = Record(world.mill.client, table=world.mill.table.name)  # type: ignore[arg-type]  # a proxy
    world.aws.poll_errors = [code] * 2
    store = world.copied(record=record)

    assert {each.version for each in (store.acting(), store.read(consistent=True), store.read())} == {0}
    assert reads == [True, True, False]


def test_the_copy_of_another_table_does_not_act(world: World) -> None:
    world.set(world.copied(table="before-the-restore"), "a", 1)
    world.set(world.record, "b", 2)

    assert world.copied().read().version == 2


def test_a_change_that_appconfig_refused_is_deployed_with_the_next(world: World) -> None:
    world.set(world.copied(), "a", 1)
    world.aws.deployment_errors = ["InternalServerException"]
    with pytest.raises(StoreUnavailableError, match="version 2 is in the history, but does not act"):
        world.set(world.copied(), "b", 2)
    assert (world.copied().read().version, world.record.read().version) == (1, 2)

    world.set(world.copied(), "c", 3)
    assert world.copied().read().flags(world.mill.now()) == {"a": 1, "b": 2, "c": 3}


def test_a_deployment_waits_for_the_one_before_it(world: World) -> None:
    world.aws.deployment_errors = ["ConflictException"] * 2
    world.set(world.copied(), "a", 1)

    assert (world.copied().read().version, len(world.pauses), world.aws.deployments) == (1, 2, 3)


def test_a_change_deploys_what_the_record_holds_at_that_moment(world: World) -> None:
    reads: list[bool] = []

    class Record(DynamoConfiguration):
        def read(self, *, consistent: bool = False) -> RuntimeConfiguration:
            reads.append(consistent)
            return super().read(consistent=consistent)

    store = world.copied(record=Record(world.mill.client, table=world.mill.table.name))  # type: ignore[arg-type]  # a proxy
    known = store.read(consistent=True)
    Configurator(store=store, clock=world.mill.now).set(known, "flags.a", 1, by="arn:ops", reason="")

    assert reads == [True] * 3


@pytest.mark.parametrize(("before", "takes"), [(9, True), (10, False)])
def test_a_change_waits_for_other_deployments_for_27_seconds(world: World, before: int, takes: bool) -> None:
    world.aws.deployment_errors = ["ConflictException"] * before
    with nullcontext() if takes else pytest.raises(StoreUnavailableError, match="AppConfig did not take"):
        world.set(world.copied(), "a", 1)

    assert world.pauses == [3.0] * 9
    assert world.aws.deployment_errors == []
    assert (world.aws.deployed is not None) is takes


def test_after_a_conflict_with_a_newer_version_the_older_one_is_not_deployed(world: World) -> None:
    """It was accepted, and may be a pause."""
    deployed: list[int] = []

    def another_operator() -> None:
        world.set(world.copied(), "b", 2)
        world.aws.deployment_errors = ["ConflictException"]

    world.aws.meanwhile = another_operator
    world.aws.after_deployment = lambda copy: deployed.append(json.loads(copy)["version"])
    world.set(world.copied(), "a", 1)

    assert deployed == [2, 2]


def test_old_versions_are_deleted_so_that_changes_go_on(world: World) -> None:
    for number in range(MOST_VERSIONS + 10):
        world.set(world.copied(), "a", number)

    assert sorted(world.aws.versions) == list(range(MOST_VERSIONS + 10 - 20, MOST_VERSIONS + 11))


def test_without_the_right_to_delete_old_versions_a_change_is_deployed(world: World) -> None:
    world.aws.deletion_error = "AccessDeniedException"
    for number in range(22):
        world.set(world.copied(), "a", number)

    assert (len(world.aws.versions), world.copied().read().version) == (22, 22)


def test_a_late_deployment_of_an_older_version_is_followed_by_the_newer(world: World) -> None:
    world.aws.meanwhile = lambda: world.set(world.copied(), "b", 2)
    world.set(world.copied(), "a", 1)

    assert [json.loads(one)["version"] for one in world.aws.versions.values()] == [1, 2, 2]
    assert world.copied().read().version == 2


def test_the_functions_of_such_a_stage_read_appconfig(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.APP_CONFIG, json.dumps(dict.fromkeys(PLACE.__struct_fields__, "id")))
    monkeypatch.setattr(clients, "app_config_data", lambda: world.aws)
    vars(composition.parts()).pop("configuration", None)
    world.set(world.copied(), "a", 1)

    assert composition.parts().configuration.current().flags(world.mill.now()) == {"a": 1}
    assert world.aws.polls == 1
    vars(composition.parts()).pop("configuration", None)
