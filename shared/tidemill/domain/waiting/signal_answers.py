"""What a job does with a signal. Pure: the store writes it, conditional on the document that was read."""

from enum import StrEnum, auto

from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State
from tidemill.domain.waiting.signals import MOST_SIGNALS, same_json, unused
from tidemill.domain.waiting.waiting import Cause


class Answer(StrEnum):
    """What a job does with a signal."""

    #: The job keeps it until a run asks for it.
    KEPT = auto()
    #: The job waits for it, and runs at once.
    WAKES = auto()
    #: The job has it already: the caller repeats itself.
    REPEATED = auto()
    #: The job has another value under that name.
    OTHER_VALUE = auto()
    #: The job has ended.
    ENDED = auto()
    TOO_MANY = auto()


def answer(job: Job, name: str, data: str, *, kept_dead: bool = False) -> Answer:
    """What `job` does with this signal. `kept_dead`: a dead job keeps it for the run after a redrive."""
    if any(signal.name == name and same_json(signal.data, data) for signal in job.signals.received):
        return Answer.REPEATED
    if job.state in TERMINAL and not (kept_dead and job.state is State.DEAD):
        return Answer.ENDED
    if unused(job.signals.received, name):
        return Answer.OTHER_VALUE
    if len(job.signals.received) >= MOST_SIGNALS:
        return Answer.TOO_MANY
    return (
        Answer.WAKES
        if waits_for_signal(job) and job.signals.awaited and job.signals.awaited.name == name
        else Answer.KEPT
    )


def waits_for_signal(job: Job) -> bool:
    """Parked, or queued for the end of its wait, as by wake minutes before. Not held or parked for another cause.

    A pause that has ended leaves its line in the job, which is queued for the end of its wait again.
    """
    at_end = job.signals.awaited is not None and job.due == job.signals.awaited.until
    if job.state is State.PARKED:
        return at_end and job.wait is not None and job.wait.alone
    free = job.wait is None or job.wait.cause is Cause.PAUSE
    return job.state is State.QUEUED and at_end and free and not job.holds.count
