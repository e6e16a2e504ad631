"""A job with a wrong effect, and its late correction, through the deployed functions."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.support.builders import reference_to
from tests.support.deployed_functions import Mill
from tests.support.http_events import Answer
from tidemill import Done, PermanentJobError, Submission
from tidemill.application.attempt.run import Run
from tidemill.domain.states import State
from tidemill.sqs import messages

MINUTE = timedelta(minutes=1)


class Story:
    """What ran, in order: `wrong`, `undo` and `right`."""

    def __init__(self, mill: Mill) -> None:
        self.mill = mill
        self.ran: list[str] = []
        self.fails: set[str] = set()
        self.corrections: list[str] = []
        self.during: Callable[[], Any] = lambda: None
        self.during_failure: Callable[[], Any] = lambda: None
        self.records_undo = True
        self.before_step: Callable[[], Any] = lambda: None
        self.step_fails = False
        mill.script.handler = self._run

    def _run(self, payload: Any, run: Run) -> Done:
        what = payload.model_extra["what"] if payload.model_extra else payload["what"]
        self.ran.append(what)
        if what in self.fails:
            self.during_failure()
            raise PermanentJobError("no")
        if what == "wrong":
            self.during()
            if self.step_fails:
                self.before_step()
                run.step("charge", lambda: 7)
                raise RuntimeError("after the charge")
            undo = Submission(type="test.scripted", payload={"what": "undo"}) if self.records_undo else None
            return Done(undo=undo)
        return Done()

    def wrong(self, **fields: Any) -> str:
        return self.mill.accepted({"what": "wrong"}, key="order-7", **fields)

    def right(self, *, supersedes: str = "order-7", key: str | None = "order-7b", **fields: Any) -> Answer:
        return self.mill.post({"what": "right"}, key=key, supersedes=supersedes, **fields)

    def accepted(self, **fields: Any) -> str:
        answer = self.right(**fields)
        assert answer.status == 202, answer
        self.corrections.append(str(answer.body["id"]))
        return self.corrections[-1]

    def forget(self, job_id: str) -> None:
        """Delete the document, as its retention does."""
        job = self.mill.job(job_id)
        self.corrections = [each for each in self.corrections if each != job_id]
        key = {"pk": {"S": f"{job.tenant}#{job.id}"}}
        self.mill.table.client.delete_item(TableName=self.mill.table.name, Key=key)

    def run(self) -> None:
        """Until nothing is held any more. The queue of moto delays a message by the time of the machine."""
        for _ in range(6):
            self.mill.run()
            self.mill.late += 2 * MINUTE
            for job in map(self.mill.job, self.corrections):
                if job.state is State.QUEUED and job.holds.count:
                    self.mill.work(self.mill.event(messages.encode(reference_to(job))))


def refused(answer: Answer, detail: str) -> None:
    assert (answer.status, answer.body["type"]) == (409, "urn:tidemill:problem:not-allowed-now"), answer
    assert detail in answer.body["detail"]
