"""The corpus, at every entry: HTTP, Python, the command line, `run_job`, and a worker that meets a stored job."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.integration.cli.conftest import run
from tests.support.builders import TENANT, a_job
from tests.support.corpus import CORPUS, REUSED, SAME, Row
from tests.support.deployed_functions import Mill
from tidemill import composition
from tidemill.client import Submission, Tidemill
from tidemill.domain.errors import InvalidPayloadError, KeyReusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.system import job_type_loader
from tidemill.testing import run_job

#: The paths of the faults, or the id of the accepted job; None if the key has another body.
Submitted = Sequence[str] | str | None


def over_http(mill: Mill, job_type: str, payload: str) -> Submitted:
    answer = mill.post_text(f'{{"type":"{job_type}","payload":{payload}}}', key="key")
    if answer.status in {200, 202}:
        return str(answer.body["id"])
    assert answer.status == 422
    return [each["pointer"].removeprefix("#") for each in answer.body.get("errors", [])] or None


def on_the_command_line(_mill: Mill, job_type: str, payload: str) -> Submitted:
    result = run("submit", job_type, payload, "--key", "key")
    if result.exit_code == 0:
        return str(json.loads(result.stdout)["id"])
    return re.findall(r"/payload[^\s:]*", result.stderr) or None


def in_python(mill: Mill, job_type: str, payload: str) -> Submitted:
    client = Tidemill.at(mill.table.name, tenant=TENANT, job_packages=["tests.support.jobs"], client=mill.table.client)
    try:
        return client.submit(Submission(type=job_type, payload=json.loads(payload), key="key")).job.id
    except InvalidPayloadError as refused:
        return [fault.path for fault in refused.faults]
    except KeyReusedError:
        return None


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row.name)
@pytest.mark.parametrize("submit", [over_http, on_the_command_line, in_python])
def test_each_input_has_its_answer_at_each_entry(
    behind: Mill, row: Row, submit: Callable[[Mill, str, str], Submitted]
) -> None:
    submitted = submit(behind, row.job_type, row.payload)

    if row.refused:
        assert (submitted, behind.stored()) == ([*row.refused], 0)
        return
    assert isinstance(submitted, str)
    for payload, answer in row.repeats.items():
        assert submit(behind, row.job_type, payload) == {SAME: submitted, REUSED: None}[answer]
    assert json.loads(composition.parts().payloads.load(behind.job(submitted))) == json.loads(row.payload)
    behind.run()
    _require_ended(behind.job(submitted), row)


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row.name)
def test_each_input_has_its_answer_in_a_test_of_a_job_type(row: Row) -> None:
    job_type, payload = job_type_loader.load(["tests.support.jobs"]).get(row.job_type), json.loads(row.payload)

    if row.refused:
        with pytest.raises(InvalidPayloadError) as refused:
            run_job(job_type, payload)
        assert [fault.path for fault in refused.value.faults] == [*row.refused]
        return
    _require_ended(run_job(job_type, payload).job, row)


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row.name)
def test_each_input_has_its_answer_in_a_worker_that_meets_a_stored_job(behind: Mill, row: Row) -> None:
    now = behind.now()
    stored = composition.parts().store.insert_if_absent(
        a_job(type=row.job_type, payload=row.payload, created_at=now, due=now)
    )
    behind.publish()
    behind.work(behind.receive())

    job = behind.job(stored.id)
    if row.refused:
        # Another version of the code has accepted it, so it waits for that.
        assert (job.state.terminal, job.held_by(HoldCause.VERSION)) == (False, 1)
        return
    _require_ended(job, row)


def _require_ended(job: Job, row: Row) -> None:
    if row.error is None:
        result: Any = None if job.result is None else json.loads(job.result)
        assert (job.state, result) == (State.SUCCEEDED, row.result)
    else:
        assert (job.state, job.result, job.errors[-1].error_class) == (State.DEAD, None, row.error)
