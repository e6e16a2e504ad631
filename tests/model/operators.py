"""People and clocks that act on what they have read, whatever has happened to the job since."""

import math
from contextlib import suppress
from copy import copy

from tests.model import model_types
from tests.model.comparison import Both, Step
from tests.model.model_types import ENDED, Job
from tests.model.shipped_system import TENANT
from tidemill.domain import job as documents
from tidemill.domain.errors import WriteRefusedError


class Act:
    """What somebody has decided to do to a job, by what it was."""

    def __init__(self, word: str, document: documents.Job, job: Job) -> None:
        self.word = word
        self.document = document
        self.job = job

    def __repr__(self) -> str:
        return f"{self.word} {self.job.name}, seen {self.job.state} at generation {self.job.generation}"


def decide(both: Both, name: str) -> list[Act]:
    """What the job as it is gives a reason for."""
    job, document = copy(both.reference.jobs[name]), both.bench.store.get(TENANT, both.id(name))
    assert document is not None
    reasons = {
        "redrive": job.state == "dead",
        "nudge": job.due < math.inf,
        "wake": job.state == "scheduled",
        "purge": job.state in ENDED,
    }
    return [Act(word, document, job) for word, holds in reasons.items() if holds]


def act(both: Both, act: Act) -> Step:
    return Step(repr(act), lambda: _really(both, act), lambda: _should(both, act))


def is_plain(both: Both, act: Act) -> bool:
    """Whether the design says what comes of it: how late a job is that was nudged meanwhile, it does not."""
    job = both.reference.jobs.get(act.job.name)
    if act.word != "nudge" or job is None or job.nudges == act.job.nudges:
        return True
    return job.nudged > both.reference.now - model_types.LATE


def _really(both: Both, act: Act) -> bool | None:
    match act.word:
        case "redrive":
            return both.bench.redriver.redrive(act.document, by="ada")
        case "purge":
            return both.bench.purger.purge(act.document)
        case "nudge":
            both.bench.nudger.nudge(act.document)
        case _:
            with suppress(WriteRefusedError):
                both.bench.store.wake(act.document)
    return None


def _should(both: Both, act: Act) -> bool | None:
    """An act applies only while the job that was read has the same state and generation.

    A later job of the same idempotency key may have both; `created` tells it apart.
    """
    reference, seen = both.reference, act.job
    if act.word == "purge":
        return _should_purge(both, seen)
    job = reference.jobs.get(seen.name)
    same = job is not None and (job.created, job.state, job.generation) == (seen.created, seen.state, seen.generation)
    late = seen.due <= reference.now - model_types.LATE
    match act.word:
        case "redrive":
            lives = same and reference.found(seen.name) is not None
            if lives:
                reference.redrive(seen.name)
            return lives
        case "nudge" if job and same and seen.state != "scheduled":
            reference.nudge(job)
        case "nudge" | "wake" if job and same and (late or act.word == "wake"):
            reference._write(job, state="queued")
    return None


def _should_purge(both: Both, seen: Job) -> bool:
    """Or it is gone already, and its group goes on in any case."""
    job = both.reference.jobs.get(seen.name)
    if job and (job.generation, job.ended) != (seen.generation, seen.ended):
        return False
    if job:
        both.reference.jobs.pop(seen.name).state = "gone"
    if seen.asked.group:
        both.reference.advance(seen.asked.group)
    return True
