"""A pause of one type, from before a deployment until its jobs have run. Its commands are printed like a terminal's."""

import json
import shlex
from datetime import datetime
from typing import Any
from uuid import uuid4

from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.configuration import CACHED_FOR
from tidemill.local.wait import wait_until
from tidemill.system import clock

TYPE = "demo.ordered"
TARGET = f"type={TYPE}"
REASON = "provider down"


def say(text: str) -> None:
    print(text.rstrip(), flush=True)  # noqa: T201 - the transcript


class PauseStory:
    """Every job writes its number to a ledger, and a second run would write it again."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed
        self._group = uuid4().hex
        #: The ids of the jobs of the group and of the others, in the order submitted.
        self._of_group: list[str] = []
        self._alone: list[str] = []

    def begin(self) -> None:
        """Pause the type, and submit jobs that are parked."""
        ran_before = self.submit_alone()
        self._deployed.until(ran_before, state="succeeded")
        shows(self.run("pause", TARGET, "--reason", REASON, "--yes"), f"Pause {TARGET} until it is resumed.")
        paused_at = clock.now()
        wait_until(lambda: clock.now() > paused_at + CACHED_FOR, PATIENCE_SECONDS, "the pause to act")
        for _ in range(3):
            self.submit_of_group()
            self.submit_alone()
        self._alone.remove(ran_before)
        self.are_parked()
        explained = self.run("explain", self._of_group[0])
        shows(explained, f"{TYPE}  parked: an operator has paused it")
        shows(explained, f"{TARGET} is paused by ")

    def still_holds(self, since: str) -> None:
        """The pause is the one of before the deployment, and jobs submitted now are parked too."""
        assert self.pause()["since"] == since
        self.submit_of_group()
        self.submit_alone()
        self.are_parked()
        status = self.run("status")
        shows(status, f"PAUSED: {TARGET} by ")
        shows(status, f", until it is resumed, 5 waiting: {REASON}")

    def end(self) -> None:
        """Resume. Each job runs once, with its first attempt, and the group in its order."""
        resumed_at = clock.now()
        resumed = self.run("resume", TARGET, "--rate", "5", "--yes")
        shows(resumed, f"Resume {TARGET}: 5 parked jobs, 5 a second.")
        jobs = [self._deployed.until(job_id, state="succeeded") for job_id in (*self._of_group, *self._alone)]
        assert {job["attempt"] for job in jobs} == {1}
        assert {bool(job["errors"]) for job in jobs} == {False}
        assert min(datetime.fromisoformat(job["claimed_at"]) for job in jobs) >= resumed_at
        assert self._deployed.ledger(self._group) == [str(number) for number in range(len(self._of_group))]
        for job_id in self._alone:
            assert self._deployed.ledger(self._deployed.job(job_id)["payload"]["ledger"]) == ["0"]
        shows(self.run("explain", self._of_group[-1]), "it became the head of its group")

    def pause(self) -> Any:
        (pause,) = json.loads(self._deployed.app.tidemill("status", "--json").stdout)["pauses"]
        return pause

    def run(self, *arguments: str) -> str:
        done = self._deployed.app.tidemill(*arguments)
        say(f"$ tidemill {shlex.join(arguments)}\n{done.stderr}{done.stdout}")
        return done.stderr + done.stdout

    def submit_of_group(self) -> None:
        self._of_group.append(self._accepted(self._group, len(self._of_group), group=self._group))

    def submit_alone(self) -> str:
        self._alone.append(self._accepted(uuid4().hex, 0))
        return self._alone[-1]

    def _accepted(self, ledger: str, number: int, **fields: str) -> str:
        return self._deployed.accepted(TYPE, {"ledger": ledger, "number": number}, **fields)

    def are_parked(self) -> None:
        """The head of the group and each other job are parked, and none has begun an attempt."""
        parked = [self._deployed.until(job_id, state="parked") for job_id in (self._of_group[0], *self._alone)]
        waiting = [self._deployed.job(job_id) for job_id in self._of_group[1:]]
        assert {job["state"] for job in waiting} == {"waiting"}
        assert {job["attempt"] for job in (*parked, *waiting)} == {0}
        assert self._deployed.ledger(self._group) == []


def shows(output: str, line: str) -> None:
    """The output has this line."""
    assert line in output
