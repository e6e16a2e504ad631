"""Operators and schedules that act on a job they read earlier, even if it has changed since."""

import math
from contextlib import suppress
from copy import copy

from tests.model import model_types
from tests.model.comparison import Comparison, Step
from tests.model.model_types import ENDED, Job
from tests.model.shipped_system import TENANT
from tidemill.domain import job as documents
from tidemill.domain.errors import WriteRefusedError


class Act:
    """A decision about a job, based on the document that was read."""

    def __init__(self, word: str, document: documents.Job, job: Job) -> None:
        self.word = word
        self.document = document
        self.job = job

    def __repr__(self) -> str:
        return f"{self.word} {self.job.name}, seen {self.job.state} at generation {self.job.generation}"


def decide(comparison: Comparison, name: str) -> list[Act]:
    """The acts that the present state of the job justifies."""
    job, document = copy(comparison.reference.jobs[name]), comparison.shipped.store.get(TENANT, comparison.id(name))
    assert document is not None
    reasons = {
        "redrive": job.state == "dead",
        "nudge": job.due < math.inf,
        "wake": job.state == "scheduled",
        "purge": job.state in ENDED,
    }
    return [Act(word, document, job) for word, holds in reasons.items() if holds]


def act(comparison: Comparison, act: Act) -> Step:
    return Step(repr(act), lambda: _act_on_shipped(comparison, act), lambda: _act_on_reference(comparison, act))


def is_specified(comparison: Comparison, act: Act) -> bool:
    """Whether the design defines the result. It does not for the lateness of a job that was nudged in between."""
    job = comparison.reference.jobs.get(act.job.name)
    if act.word != "nudge" or job is None or job.nudges == act.job.nudges:
        return True
    return job.nudged > comparison.reference.now - model_types.LATE


def _act_on_shipped(comparison: Comparison, act: Act) -> bool | None:
    match act.word:
        case "redrive":
            return comparison.shipped.redriver.redrive(act.document, by="ada")
        case "purge":
            return comparison.shipped.purger.purge(act.document)
        case "nudge":
            comparison.shipped.nudger.nudge(act.document)
        case _:
            with suppress(WriteRefusedError):
                comparison.shipped.store.wake(act.document, now=comparison.shipped.clock())
    return None


def _act_on_reference(comparison: Comparison, act: Act) -> bool | None:
    """An act applies only while the job that was read has the same state and generation.

    A later job of the same idempotency key may have both; `created` distinguishes them.
    """
    reference, seen = comparison.reference, act.job
    if act.word == "purge":
        return _purge_in_reference(comparison, seen)
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


def _purge_in_reference(comparison: Comparison, seen: Job) -> bool:
    """Purge the job unless it changed. Its group advances even if the job is gone already."""
    job = comparison.reference.jobs.get(seen.name)
    if job and (job.generation, job.ended) != (seen.generation, seen.ended):
        return False
    if job:
        comparison.reference.jobs.pop(seen.name).state = "gone"
    if seen.request.group:
        comparison.reference.advance(seen.request.group)
    return True
