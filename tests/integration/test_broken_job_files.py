"""A deployed job file that cannot be imported stops its own types alone, and their jobs wait until it is fixed."""

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.deployed_functions import Mill, forget
from tests.support.faulty_client import Fault
from tidemill import Done, Run, Submission, UnloadedJobTypeError, composition
from tidemill.application.attempt.attempt_holds import MOST_HOLDS_OF_A_VERSION
from tidemill.client import Tidemill
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Line
from tidemill.dynamodb.limits.limit_item import TYPE_PREFIX
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.names import JOB_KEY, Env
from tidemill.sqs import messages

TYPE: Final = "mail.welcome"
MINUTE: Final = timedelta(minutes=1)
SOUND: Final = f"""\
from pydantic import BaseModel
from tidemill import job_type

class Greeting(BaseModel):
    n: int = 0

@job_type("{TYPE}", payload=Greeting)
def welcome(greeting, run):
    return greeting.n
"""
BROKEN: Final = f"{SOUND}\nTEMPLATES = {{}}['welcome']\n"

Deploy = Callable[..., None]
_numbers = itertools.count()


@pytest.fixture
def deploy(mill: Mill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deploy]:
    """Deploys these job files, by name, beside those of the test: each function starts anew."""
    mill.stop_clock()
    monkeypatch.syspath_prepend(str(tmp_path))
    packages: list[str] = []

    def deployed(**files: str) -> None:
        # A name of its own, so that nothing of the version before is imported.
        package = tmp_path / f"shop_jobs_{next(_numbers)}"
        package.mkdir()
        (package / "__init__.py").touch()
        for name, text in files.items():
            (package / f"{name}.py").write_text(text)
        packages.append(package.name)
        monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{package.name}")
        forget()

    yield deployed
    for name in [name for name in sys.modules if name.startswith(tuple(packages))]:
        del sys.modules[name]


def waken(mill: Mill, *job_ids: str) -> None:
    """Some minutes of wake. The queues of moto do not follow the clock of the test, so their delays are left out."""
    for _ in range(3):
        mill.wake()
        mill.late += MINUTE
        mill.run()
        due = [job for job in map(mill.job, job_ids) if job.state is State.QUEUED]
        if due:
            mill.work(mill.event(*(messages.encode(reference_to(job)) for job in due)))


def lines(text: str, message: str) -> list[dict[str, object]]:
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in found if line["message"] == message]


def test_a_broken_file_stops_no_other_type(mill: Mill, deploy: Deploy, capsys: pytest.CaptureFixture[str]) -> None:
    deploy(mail=BROKEN)

    jobs = [mill.accepted() for _ in range(2)]
    mill.run()

    assert {mill.job(job_id).state for job_id in jobs} == {State.SUCCEEDED}
    logged = capsys.readouterr().out
    (line,) = lines(logged, "broken job file")
    assert str(line["error"]).endswith("mail.py, line 11: KeyError: 'welcome'")
    counted = [line["BrokenJobFiles"] for line in lines(logged, "metrics") if "BrokenJobFiles" in line]
    assert (line["level"], line["BrokenJobFiles"], counted) == ("ERROR", 1, [1])


def test_a_submission_of_a_type_that_may_be_in_a_broken_file_is_answered_with_503(mill: Mill, deploy: Deploy) -> None:
    deploy(mail=BROKEN)

    for name in (TYPE, "mail.other"):
        answer = mill.post(job_type=name)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "60")
        assert answer.body["type"] == "urn:tidemill:problem:job-type-not-loaded"
        assert answer.body["detail"] == f"job type '{name}' is not available now"
    assert mill.stored() == 0


def test_a_repeated_submission_finds_its_job_though_the_type_is_not_loaded(mill: Mill, deploy: Deploy) -> None:
    deploy(mail=SOUND)
    first = mill.post(job_type=TYPE, key="a")
    deploy(mail=BROKEN)

    again = mill.post(job_type=TYPE, key="a")

    assert (again.status, again.body["id"]) == (200, first.body["id"])


def test_jobs_of_a_broken_file_wait_without_an_attempt_and_run_once_it_is_fixed(mill: Mill, deploy: Deploy) -> None:
    deploy(mail=SOUND)
    job_ids = [mill.accepted(job_type=TYPE) for _ in range(2)]
    mill.publish()
    deploy(mail=BROKEN)

    mill.run()

    jobs = [mill.job(job_id) for job_id in job_ids]
    assert {(job.state, job.attempt, job.hops, job.errors) for job in jobs} == {(State.PARKED, 0, 0, ())}
    assert {job.wait and job.wait.line for job in jobs} == {Line(Cause.TYPE, TYPE)}
    assert {job.holds.cause for job in jobs} == {HoldCause.TYPE}
    assert mill.depth(mill.queue) == 0
    waken(mill)
    assert {mill.job(job_id).generation for job_id in job_ids} == {job.generation for job in jobs}, "it was released"

    deploy(mail=SOUND)
    waken(mill, *job_ids)

    assert {(mill.job(job_id).state, mill.job(job_id).attempt) for job_id in job_ids} == {(State.SUCCEEDED, 1)}


def test_a_file_that_stays_broken_holds_its_jobs_longer_than_any_other_version(mill: Mill, deploy: Deploy) -> None:
    """Reconcile releases them each day, and they are parked again."""
    deploy(mail=SOUND)
    job_id = mill.accepted(job_type=TYPE)
    mill.publish()
    deploy(mail=BROKEN)
    mill.run()

    for _ in range(MOST_HOLDS_OF_A_VERSION + 1):
        mill.late += LONGEST_PARKED
        job = mill.job(job_id)
        composition.parts().store.unpark(job, now=mill.now(), due=mill.now())
        mill.run()

    job = mill.job(job_id)
    assert (job.state, job.attempt, job.errors) == (State.PARKED, 0, ())
    limits = DynamoLimits(mill.table.client, table=mill.table.name)
    assert list(limits.lines()) == [Line.for_type(TYPE)]
    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    (line,) = [item for item in items if item[JOB_KEY]["S"].startswith(TYPE_PREFIX)]
    assert "expires_at" not in line


@pytest.mark.parametrize("names", [("one", "two"), ("two", "one")])
def test_two_files_with_one_name_disable_that_name_alone(mill: Mill, deploy: Deploy, names: tuple[str, str]) -> None:
    first, second = names
    deploy(**{first: SOUND, second: SOUND.replace("greeting.n", "-1"), "three": SOUND.replace(TYPE, "mail.third")})

    assert mill.post(job_type=TYPE).status == 503
    assert mill.post(job_type="mail.unknown").status == 422
    job_id = mill.accepted(job_type="mail.third")
    mill.run()
    assert mill.job(job_id).state is State.SUCCEEDED


def test_a_job_whose_follow_up_cannot_be_checked_waits_for_its_type(mill: Mill, deploy: Deploy) -> None:
    deploy(mail=BROKEN)
    mill.script.handler = lambda _payload, _run: Done(then=[Submission(type=TYPE, payload={"n": 3})])
    job_id = mill.accepted()

    mill.run()

    job = mill.job(job_id)
    assert (job.state, job.attempt, job.wait and job.wait.line) == (State.PARKED, 0, Line.for_type(TYPE))
    deploy(mail=SOUND)
    waken(mill, job_id)
    assert mill.job(job_id).state is State.SUCCEEDED
    results = [
        item["result"]["S"] for item in mill.table.client.scan(TableName=mill.table.name)["Items"] if "result" in item
    ]
    assert results == ["3"]


def test_an_outage_while_a_job_is_parked_for_its_follow_up_costs_no_attempt(mill: Mill, deploy: Deploy) -> None:
    deploy(mail=BROKEN)

    def handler(_payload: Any, _run: Run) -> Done:
        mill.client.faults = [Fault.NOT_SENT]
        return Done(then=[Submission(type=TYPE, payload={"n": 3})])

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.publish()
    mill.work(mill.receive())

    job = mill.job(job_id)
    assert (job.attempt, job.errors, job.holds.cause) == (0, (), HoldCause.OUTAGE)


def test_a_python_client_logs_the_broken_file_and_submits_all_other_types(
    mill: Mill, deploy: Deploy, caplog: pytest.LogCaptureFixture
) -> None:
    deploy(mail=BROKEN)

    client = Tidemill.here(tenant="billing")

    assert not client.submit(Submission(type="test.noop", payload={})).replayed
    assert "broken job file: " in caplog.text
    with pytest.raises(UnloadedJobTypeError, match=r"mail\.py, line 11: KeyError: 'welcome'$"):
        client.submit(Submission(type=TYPE))
