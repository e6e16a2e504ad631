"""Test job types without AWS: a job runs in process, at a time that the test sets, and the test reads its outcome.

def test_a_welcome_is_followed_by_a_reminder() -> None:
    ran = run_job(welcome, {"address": "ada@example.com"}, known=[remind])
    assert ran.state is State.SUCCEEDED
    assert ran.enqueued == (Submission(type="mail.remind", delay=timedelta(days=3)),)

The worker's own code parses, runs and settles the job. Only the table is missing: conditions of a handler's own writes
are not checked, and limits do not hold a job back.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_context import AttemptContext
from tidemill.application.attempt.handler_results import outcome_of_error
from tidemill.application.attempt.participant import Participant
from tidemill.application.batch_handlers.joint_calls import JointCalls
from tidemill.application.control.control import Control
from tidemill.application.event_types import EventType
from tidemill.application.features.attempt_features import gates_of
from tidemill.application.features.submit_features import RULES, placements
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.submission.new_jobs import NewJobs
from tidemill.application.submission.submit import Submit
from tidemill.domain.admission.strain import LEVEL_SETTING
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.errors import TidemillError
from tidemill.domain.events.events import Event, Publication
from tidemill.domain.job import AttemptError, Job
from tidemill.domain.operations.runtime_configuration import FLAG_PREFIX, NOTHING_SET, RuntimeConfiguration
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.fan_out.job import fan_out
from tidemill.in_memory.single_job import Inline, NoJobs, OneJob, Unlimited

__all__ = ["NOON", "TENANT", "Drive", "JobEndedError", "Ran", "State", "Submission", "run_batch", "run_job"]

NOON: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
TENANT: Final = "tests"
#: The length of an invocation, and so of a run whose type sets no timeout.
_INVOCATION: Final = timedelta(minutes=5)


class JobEndedError(TidemillError):
    """The job has ended and will not run again."""


class Ran(Struct, frozen=True, kw_only=True):
    """The outcome of one run."""

    #: The document after the run.
    job: Job
    #: The failure of the run, as the document records it; None if it did not fail.
    error: AttemptError | None
    #: The exception that the handler raised, with its traceback; None without one.
    raised: Exception | None
    #: The follow-up jobs, events and writes that committed with the success.
    enqueued: tuple[Submission, ...]
    published: tuple[Event, ...]
    #: A write is a `TransactWrite` or an `Add`.
    writes: tuple[Any, ...]
    #: What would undo the success, as it is submitted: in the group of the job. None without one.
    undo: Submission | None
    #: The states that `run.checkpoint` saved, decoded, in order.
    checkpoints: tuple[Any, ...]
    #: The names of the steps that the run recorded, in order. Those that an earlier run recorded are in `job.steps`.
    steps: tuple[str, ...]

    @property
    def state(self) -> State:
        return self.job.state

    @property
    def result(self) -> Any:
        return None if self.job.result is None else json.loads(self.job.result)

    @property
    def due(self) -> datetime | None:
        """When the job runs again; None if it has ended."""
        return self.job.due


class Drive:
    """A job that a test drives through its runs. Only the test and `run` move the clock, `now`."""

    def __init__(
        self,
        job_type: JobType,
        payload: Mapping[str, Any] | None = None,
        *,
        now: datetime = NOON,
        known: Sequence[JobType | EventType] = (),
        draw: float = 0.5,
        flags: Mapping[str, Any] | None = None,
        strained: int = 0,
        job_id: str = "job",
        **asked: Any,
    ) -> None:
        """`known` are the types of its follow-up jobs and events. `draw`, from [0, 1), replaces chance in its backoff.

        `flags` are what the handler reads from `run.flags`, and `strained` what it reads from `run.strained`.

        `asked` are the other fields of its `Submission`. Raises `InvalidPayloadError` as a real submission does, and
        `ValueError` for a time without an offset from UTC.
        """
        if now.utcoffset() is None:
            raise ValueError(f"now is {now!r}; it must have an offset from UTC, such as tzinfo=UTC")
        self.now = now
        types = _types([job_type, *known])
        self._submit = _Recording(types, self, job_id=job_id)
        submission = Submission(type=job_type.name, payload=payload or {}, **asked)
        self._document = OneJob(self._submit.prepare(submission, tenant=TENANT, trace="test"))
        self._tools = AttemptContext(
            gates=gates_of,
            store=self._document,
            payloads=Inline(),
            limits=Unlimited(),
            job_types=types,
            submit=self._submit,
            # The clock is in UTC, as that of the engine: times of another zone are not compared around the end of
            # daylight saving time.
            clock=lambda: self.now.astimezone(UTC),
            new_token=self._document.new_token,
            draw=lambda: draw,
            pause=lambda _seconds: None,
            configuration=lambda: _with_settings(flags or {}, strained, now),
        )

    @property
    def job(self) -> Job:
        """The document. Set it to start from any state."""
        return self._document.job

    @job.setter
    def job(self, job: Job) -> None:
        self._document.job = job

    def cancel(self) -> None:
        """Request the cancel of the job: its next checkpoint raises, or its next run ends before the handler starts."""
        self.job = replace(self.job, cancel=replace(self.job.cancel, requested_at=self.now))

    def signal(self, name: str, data: Any = None) -> None:
        """Give the job a signal, as a caller does. Its run begins at once if it waits for that.

        Raises as `tidemill.client.Tidemill.signal`.
        """
        Control(store=self._document, clock=lambda: self.now, new_token=self._document.new_token).signal(
            TENANT, self.job.id, name, data
        )

    def run(self) -> Ran:
        """Move the clock to the time at which the job is due, and run it once. Raises `JobEndedError`.

        A batch handler gets lists of one payload and one run. `run_batch` calls it with several.
        """
        return self._run_as(None)

    def _run_as(self, participant: Participant | None) -> Ran:
        if self.job.due is None:
            raise JobEndedError(f"the job is {self.job.state} and cannot run again; start a new Drive")
        self.now = max(self.now, self.job.due)
        self._document.saved.clear()
        self._document.recorded.clear()
        self._submit.asked.clear()
        self._submit.prepared = None
        attempt = Attempt(reference_to(self.job), self._tools, deadline=self.now + _INVOCATION, participant=participant)
        attempt.claim(remaining=_INVOCATION)
        raised = None
        try:
            outcome = attempt.run()
        except Exception as error:  # noqa: BLE001 - as the worker does
            raised, outcome = error, outcome_of_error(error)
        attempt.finish(outcome)
        settled = self._document.settled
        asked = self._submit.asked if settled.follow_ups else []
        return Ran(
            job=self.job,
            error=settled.error,
            raised=raised,
            enqueued=tuple(one for one in asked if not isinstance(one, Publication)),
            published=tuple(one.event for one in asked if isinstance(one, Publication)),
            writes=tuple(settled.writes),
            undo=self._submit.prepared if settled.undo else None,
            checkpoints=tuple(json.loads(saved.state) for saved in self._document.saved if saved.state),
            steps=tuple(step.name for step in self._document.recorded),
        )

    def run_until_it_ends(self, *, most: int = 100) -> Ran:
        """The last run of the job. Raises `AssertionError` if it has not ended after `most` runs."""
        for _ in range(most):
            ran = self.run()
            if ran.state.terminal:
                return ran
        raise AssertionError(f"after {most} runs the job is still {self.job.state}")


def run_job(
    job_type: JobType,
    payload: Mapping[str, Any] | None = None,
    *,
    now: datetime = NOON,
    attempt: int = 1,
    checkpoint: Any = None,
    known: Sequence[JobType | EventType] = (),
    flags: Mapping[str, Any] | None = None,
    strained: int = 0,
) -> Ran:
    """Run attempt number `attempt` of a new job once, resumed from `checkpoint`. The rest as for `Drive`."""
    drive = Drive(job_type, payload, now=now, known=known, flags=flags, strained=strained)
    saved = None if checkpoint is None else json.dumps(checkpoint)
    drive.job = replace(drive.job, attempt=attempt - 1, progress=replace(drive.job.progress, checkpoint=saved))
    return drive.run()


def run_batch(
    job_type: JobType,
    payloads: Sequence[Mapping[str, Any]],
    *,
    now: datetime = NOON,
    known: Sequence[JobType | EventType] = (),
    flags: Mapping[str, Any] | None = None,
    strained: int = 0,
) -> list[Ran]:
    """Run new jobs of a type with a batch handler together, as one batch of messages. Returns a `Ran` for each payload.

    They share a call, or several if they are more than `batch`. Their ids are `job-1`, `job-2` and so on. The rest as
    for `Drive`.
    """
    drives = [
        Drive(job_type, payload, now=now, known=known, flags=flags, strained=strained, job_id=f"job-{number}")
        for number, payload in enumerate(payloads, start=1)
    ]
    if not drives:
        return []
    # What a drive has, and how it runs beside others, is private to this module.
    calls = JointCalls(drives[0]._tools, participants=len(drives), longest_wait_seconds=_INVOCATION.total_seconds())  # noqa: SLF001
    with ThreadPoolExecutor(max_workers=len(drives)) as threads:
        return list(threads.map(Drive._run_as, drives, calls.participants))  # noqa: SLF001


def _types(known: Sequence[JobType | EventType]) -> JobTypes:
    return JobTypes(
        {one.name: one for one in (*known, fan_out) if isinstance(one, JobType)},
        events={(one.name, one.version): one for one in known if isinstance(one, EventType)},
    )


def _with_settings(flags: Mapping[str, Any], strained: int, at: datetime) -> RuntimeConfiguration:
    configuration = NOTHING_SET
    values = {LEVEL_SETTING: strained} | {FLAG_PREFIX + name: value for name, value in flags.items()}
    for name, value in values.items():
        setting = Setting(name=name, value=value, at=at, by="test", reason="")
        configuration = RuntimeConfiguration(document=configuration.with_setting(setting))
    return configuration


class _Recording(Submit):
    """Keeps the submissions that a handler asks for. A test compares them more easily than the jobs made from them."""

    def __init__(self, job_types: JobTypes, drive: Drive, *, job_id: str) -> None:
        store = NoJobs()
        jobs = NewJobs(store=store, payloads=Inline(), clock=lambda: drive.now)
        super().__init__(
            jobs=jobs,
            job_types=job_types,
            clock=lambda: drive.now,
            new_id=lambda: job_id,
            rules=RULES,
            placements=placements(jobs, store=store, clock=lambda: drive.now),
        )
        self.asked: list[Submission] = []
        self.prepared: Submission | None = None

    def prepare(self, submission: Submission, *, tenant: str, trace: str, job_id: str | None = None) -> Job:
        self.prepared = submission
        return super().prepare(submission, tenant=tenant, trace=trace, job_id=job_id)

    def prepare_follow_up(self, submission: Submission, parent: Job, *, index: int) -> Job:
        self.asked.append(submission)
        return super().prepare_follow_up(submission, parent, index=index)
