"""`migrate`: a job of ours rewrites the payloads of a type with a function of the app."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from tests.integration.cli.conftest import pipeline, run, shortener
from tests.integration.cli.loopback import Loopback
from tests.support.builders import FRESH, a_job, an_error
from tests.support.deployed_functions import Mill, forget
from tests.support.job_tables import REGION, client
from tests.support.payload_bucket import payload_of
from tidemill import composition
from tidemill.aws import clients
from tidemill.cli.errors import CommandError
from tidemill.cli.installation import Installation
from tidemill.cli.operations.operator_job import require_success
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import FLOW_TYPE, MIGRATION_TYPE, Env, Lane
from tidemill.system import clock

_ADD: Final = "tests.support.migrations:add_unit"
_SOME: Final = "tests.support.migrations:add_unit_but_for_two"
_TYPE: Final = "test.scripted"


@pytest.fixture
def system(server: Loopback, mill: Mill, environment: pytest.MonkeyPatch) -> Mill:
    """The worker of lane bulk runs whenever the command waits."""
    urls = {"queue": mill.queue, "dead_letters": mill.dead_letters}
    environment.setenv(Env.LANES, json.dumps({Lane.BULK: urls}))
    environment.setenv(Env.JOB_PACKAGES, "tests.support.jobs,tidemill.migration")
    forget()
    server.stacks = [pipeline(mill.table.name, "{}"), shortener()]
    s3: Any = client("s3")
    s3.create_bucket(Bucket="files", CreateBucketConfiguration={"LocationConstraint": REGION})
    environment.setattr(clients, "s3", lambda: s3)
    environment.setattr(clients, "sts", partial(client, "sts"))
    environment.setattr("tidemill.cli.operations.operator_job.sleep", lambda _seconds: mill.run())
    return mill


def printed(*arguments: str) -> str:
    """What the command prints, without the lines of the functions, which share its stdout here."""
    lines = run("migrate", _TYPE, *arguments).stdout.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith('{"level"'))


@pytest.fixture
def put(system: Mill) -> Callable[..., Job]:
    """A job whose time has not come."""

    def put(payload: str = '{"n":1}', **changes: Any) -> Job:
        times = FRESH[State.SCHEDULED] | {"due": clock.now().replace(year=2090)}
        fields = {"type": _TYPE, "lane": Lane.BULK, "state": State.SCHEDULED, **times, **changes}
        job = composition.parts().payloads.put_away(a_job(payload=payload, **fields))
        system.table.put(job)
        return job

    return put


def payload(job: Job) -> Any:
    found = composition.parts().store.get(job.tenant, job.id)
    assert found
    return json.loads(composition.parts().payloads.load(found))


def test_each_live_job_gets_the_payload_that_the_function_returns(system: Mill, put: Callable[..., Job]) -> None:
    sizes = [10_000, 100_000]
    small, *large = put(), *(put(payload_of(size)) for size in sizes)
    other, new = put(type="test.noop"), put('{"n":7,"unit":"km"}')
    items = system.stored()

    assert printed("--with", _ADD, "--yes") == "3 rewritten, 1 unchanged, 0 failed, 0 left.\n"
    assert payload(small) == {"n": 1, "unit": "m"}
    assert [payload(job)["unit"] for job in large] == ["m", "m"]
    assert (payload(other), payload(new)) == ({"n": 1}, {"n": 7, "unit": "km"})
    # The migration, its audit entry, and no payload besides those of the jobs.
    assert system.stored() == items + 2
    assert len(clients.s3().list_objects_v2(Bucket="files")["Contents"]) == 1


def test_a_migrated_job_runs_with_its_new_payload(system: Mill, put: Callable[..., Job]) -> None:
    seen: list[Any] = []
    system.script.handler = lambda sent, _run: seen.append(sent.model_dump())
    job = put()
    run("migrate", _TYPE, "--with", _ADD, "--yes")

    stored = composition.parts().store.get(job.tenant, job.id)
    assert stored
    composition.parts().store.wake(replace(stored), now=clock.now())
    system.table.put(replace(stored, state=State.QUEUED, due=clock.now(), generation=stored.generation + 1))
    system.run()

    assert seen == [{"n": 1, "unit": "m"}]


def test_ended_jobs_are_migrated_on_request(put: Callable[..., Job]) -> None:
    live = put()
    dead = put(state=State.DEAD, due=None, finished_at=clock.now(), death=DeathReason.EXHAUSTED)

    assert run("migrate", _TYPE, "--with", _ADD, "--ended", "--yes").exit_code == 0

    assert (payload(live), payload(dead)) == ({"n": 1}, {"n": 1, "unit": "m"})


def test_a_dry_run_counts_and_shows_examples_and_writes_nothing(put: Callable[..., Job]) -> None:
    jobs = [put() for _ in range(4)]

    first, *examples = printed("--with", _ADD, "--dry-run").splitlines()
    assert first == "Dry run: 4 rewritten, 0 unchanged, 0 failed, 0 left."
    assert examples[1:3] == ['  before {"n":1}', '  after  {"unit":"m","n":1}']
    assert len(examples) == 9
    assert [payload(job) for job in jobs] == [{"n": 1}] * 4


def test_a_dry_run_counts_a_job_that_runs_and_does_not_fail(put: Callable[..., Job]) -> None:
    now = clock.now()
    put(state=State.RUNNING, attempt=1, claimed_at=now, owner="a run")

    assert run("migrate", _TYPE, "--with", _ADD, "--dry-run").exit_code == 0
    assert printed("--with", _ADD, "--dry-run") == "Dry run: 0 rewritten, 0 unchanged, 0 failed, 1 left.\n"


def test_a_payload_that_cannot_be_migrated_is_listed_and_stays(put: Callable[..., Job]) -> None:
    jobs = [put(json.dumps({"n": number})) for number in range(1, 5)]

    result = run("migrate", _TYPE, "--with", _SOME, "--yes")

    assert result.exit_code == 1
    assert "Error: 3 payloads could not be migrated" in result.stderr
    assert [payload(job) for job in jobs] == [{"n": 1, "unit": "m"}, {"n": 2}, {"n": 3}, {"n": 4}]
    lines = {
        job.id: [line for line in result.stdout.splitlines() if line.startswith(f"failed: job {job.id} ")]
        for job in jobs[1:]
    }
    assert "ValueError: two has no unit" in lines[jobs[1].id][0]
    assert "/payload/n" in lines[jobs[2].id][0]
    assert "changes its own result" in lines[jobs[3].id][0]


def test_a_migration_leaves_an_audit_entry(put: Callable[..., Job]) -> None:
    put()

    shown = json.loads(printed("--with", _ADD, "--yes", "--reason", "v2", "--json"))

    assert (shown["state"], shown["rewritten"]) == ("succeeded", 1)
    entry = json.loads(run("audit", "--json").stdout)
    assert (entry["command"], entry["reason"], entry["outcome"]) == ("migrate", "v2", "done")
    assert (entry["options"]["function"], entry["options"]["type"]) == (_ADD, _TYPE)
    assert entry["counts"] == {"rewritten": 1, "unchanged": 0, "failed": 0, "left": 0}


def _throttle(environment: pytest.MonkeyPatch, *, reads: int) -> None:
    """The first reads of the command, once its job is submitted."""
    read, left = Installation.store.func, [reads]  # type: ignore[attr-defined]  # a cached property

    class Throttled:
        def __init__(self, store: Any) -> None:
            self._store = store

        def get(self, tenant: str, job_id: str) -> Job | None:
            if left[0]:
                left[0] -= 1
                raise StoreUnavailableError("Rate exceeded")
            found: Job | None = self._store.get(tenant, job_id)
            return found

    environment.setattr(Installation, "store", property(lambda installation: Throttled(read(installation))))


def test_a_table_that_throttles_for_a_while_does_not_end_the_watch(
    put: Callable[..., Job], environment: pytest.MonkeyPatch
) -> None:
    put()
    _throttle(environment, reads=3)
    result = run("migrate", _TYPE, "--with", _ADD, "--yes")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("Rate exceeded; retrying") == 3
    assert "1 rewritten" in result.stdout


def test_a_migration_that_cannot_be_watched_is_said_to_continue(
    put: Callable[..., Job], environment: pytest.MonkeyPatch
) -> None:
    put()
    _throttle(environment, reads=1_000)
    result = run("migrate", _TYPE, "--with", _ADD, "--yes")
    assert result.exit_code == 1
    assert "What to do: The migration continues: `tidemill get " in result.stderr


def test_ctrl_c_says_that_the_migration_continues(
    system: Mill, put: Callable[..., Job], environment: pytest.MonkeyPatch
) -> None:
    job = put()

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    environment.setattr("tidemill.cli.operations.operator_job.sleep", interrupt)
    result = run("migrate", _TYPE, "--with", _ADD, "--yes")

    assert result.exit_code == 130
    assert "The migration continues" in result.stderr
    system.run()
    assert payload(job) == {"n": 1, "unit": "m"}


def test_only_operators_can_submit_a_migration(system: Mill, put: Callable[..., Job]) -> None:
    """The function may be any code of the app, so no caller may choose it."""
    job = put()
    before = system.stored()

    answer = system.post({"type": _TYPE, "function": _ADD, "rate": 1}, job_type=MIGRATION_TYPE)

    assert answer.status == 422
    assert "operators run `tidemill migrate` instead" in str(answer.body)
    assert system.stored() == before
    assert payload(job) == {"n": 1}


def test_the_payloads_of_built_in_types_are_not_migrated(system: Mill) -> None:
    result = run("migrate", FLOW_TYPE, "--with", _ADD, "--yes")

    assert (result.exit_code, system.stored()) == (2, 0)
    assert "the payloads of tidemill.flow are not those of an app" in " ".join(result.stderr.split())


@pytest.mark.parametrize("arguments", [[], ["--with", "add_unit", "--yes"], ["--with", _ADD], ["--with", "os.system:"]])
def test_invalid_arguments_are_wrong_usage(system: Mill, arguments: list[str]) -> None:
    assert run("migrate", _TYPE, *arguments).exit_code == 2
    assert system.stored() == 0


@pytest.mark.parametrize(
    ("death", "why"), [(DeathReason.EXHAUSTED, "no such thing"), (DeathReason.UNDELIVERABLE, "undeliverable")]
)
def test_a_dead_migration_is_reported_with_the_cause_of_its_death(death: DeathReason, why: str) -> None:
    job = a_job(state=State.DEAD, death=death, errors=(an_error(),))

    with pytest.raises(CommandError, match=f"migration {job.id} is dead: {why}"):
        require_success(job, name="migration")
