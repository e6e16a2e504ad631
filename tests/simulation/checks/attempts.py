"""How runs begin, resume and end: compares the records of handlers, the reports of workers and the documents."""

from typing import Final

from tests.simulation.checks.crashes import CrashChecks
from tests.simulation.checks.odd_values import ODD_TYPE
from tests.simulation.checks.violation import require
from tests.simulation.jobs.handler_runs import BrokenError, HandlerRun
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.downstream import DownstreamStatusError
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import RAISED
from tests.simulation.world.world import World
from tidemill.application.attempt.attempt_report import Ending
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict
from tidemill.domain.errors import NewerSchemaError, TidemillError
from tidemill.domain.states import State

#: Errors that a function raises to be invoked again.
_RETRIED: Final = frozenset({"StoreUnavailableError", "TransactionConflictError", "NewerSchemaError"})
#: Errors that handlers raise, or let through.
_OF_HANDLERS: Final = (TidemillError, BrokenError, DownstreamStatusError, TimeoutError)
#: Endings of a message that claimed no job.
NO_RUN: Final = frozenset({Ending.REFUSED, Ending.REDRIVEN, Ending.MALFORMED, Ending.NOT_STARTED})
#: Longest delay between a timeout and its detection.
_NOTICED_WITHIN_MS: Final = 2_000


class AttemptChecks:
    """Runs at the end of one world."""

    def __init__(self, world: World, crashes: CrashChecks) -> None:
        self._world = world
        self._crashes = crashes

    def at_end(self) -> None:
        """Raises `Violation`."""
        self._no_unexpected_errors()
        self._no_run_from_a_stale_message()
        self._refusals_say_why()
        self._runs_resume_from_the_checkpoint()
        self._runs_end_within_the_timeout()
        self._suspect_jobs_run_alone()

    def _no_unexpected_errors(self) -> None:
        """No unexpected error, even one that the code contains."""
        check = "no unexpected error"
        for _, by, report in self._world.reports:
            # The check of odd values names the error of each.
            odd = report.job is not None and report.job.type == ODD_TYPE
            expected = odd or report.cause is None or isinstance(report.cause, _OF_HANDLERS)
            require(expected, check, f"{by}: {report.cause!r}", "*")
        for _, who, what in self._world.trace.lines:
            if what.startswith(RAISED):
                name = what.removeprefix(RAISED).partition(":")[0]
                # An error with one record must not stop publish from handling the others.
                passes = {NewerSchemaError.__name__} if who.startswith("publish") else _RETRIED
                require(name in passes, check, f"{who}: {what}", "*")

    def _no_run_from_a_stale_message(self) -> None:
        for reference, report in self._world.reports_by_message:
            if report.job and reference and report.ending not in NO_RUN:
                own = reference.generation == report.job.generation
                what = f"a message of generation {reference.generation} ran generation {report.job.generation}"
                require(own, "a stale message begins no run", what, f"{report.job.tenant}#{report.job.id}")

    def _refusals_say_why(self) -> None:
        """The verdict on a message that claimed nothing follows from the document that refused it."""
        for reference, report in self._world.reports_by_message:
            if report.verdict is None or report.ending is not Ending.REFUSED:
                continue
            job, verdict = report.job, report.verdict
            # An earlier job of the same key left the message. Its own comes once the group has reached the job.
            waiting = job is not None and job.state is State.WAITING
            fits = {
                ClaimVerdict.GONE: job is None,
                ClaimVerdict.DUPLICATE: job is not None and job.state.terminal,
                ClaimVerdict.STALE: job is not None and job.generation > reference.generation,
                ClaimVerdict.AHEAD: job is not None and job.generation < reference.generation,
                ClaimVerdict.LEASED: job is not None and job.lease.owner is not None,
                ClaimVerdict.EARLY: job is not None and job.lease.owner is None and (waiting or job.due is not None),
            }[verdict]
            # The message returns when the lease ends or the job is due.
            waits = (
                waiting or verdict not in {ClaimVerdict.LEASED, ClaimVerdict.EARLY} or report.put_back_until == job.due
            )
            what = f"{verdict} for {job and job.state}, put back until {report.put_back_until}"
            require(fits and waits, "a refusal says why", what, f"{reference.tenant}#{reference.job_id}")

    def _runs_resume_from_the_checkpoint(self) -> None:
        for run in self._world.runs:
            # A run whose job was taken over before it began resumes from the checkpoint that its claim returned.
            goes_on = run.resumed_from >= run.saved_before or self._clocks_far_off
            what = f"it resumed from {run.resumed_from}, not {run.saved_before}"
            require(goes_on, "runs resume from the last checkpoint", what, run.key)

    def _runs_end_within_the_timeout(self) -> None:
        """A run that exceeds its timeout has failed, even if its handler returns."""
        for _, by, report in self._world.reports:
            if report.job is None or report.ending is not Ending.SUCCEEDED:
                continue
            for run in self._world.runs:
                # A run whose job was taken over before it began is recorded with the later owner.
                if (run.by, run.owner) == (by, report.job.lease.owner) and run.ended_ms is not None:
                    took_ms = run.ended_ms - run.began_ms
                    in_time = took_ms <= self._longest_ms(run) + _NOTICED_WITHIN_MS
                    require(in_time, "runs end within their timeout", f"it succeeded after {took_ms} ms", run.key)

    def _suspect_jobs_run_alone(self) -> None:
        """A job that may have killed its worker runs alone, if the invocation has time to wait for that."""
        for run in self._world.runs:
            if (
                run.owner not in self._crashes.suspects
                or self._clocks_far_off
                or run.by in self._world.scheduler.interrupted
            ):
                continue
            for other in self._world.runs:
                beside = other is not run and other.by == run.by and _overlap(run, other)
                require(not beside, "a suspect job runs alone", f"it ran beside {other.key} in {run.by}", run.key)

    def _longest_ms(self, run: HandlerRun) -> float:
        lane = self._world.deployment.lane(run.lane)
        timeout = job_type(run.kind).timeout
        return 1000 * min(lane.job_timeout_seconds, timeout.total_seconds() if timeout else lane.job_timeout_seconds)

    @property
    def _clocks_far_off(self) -> bool:
        return bool(self._world.faults.counted[Fault.CLOCK_FAR_OFF])


def _overlap(one: HandlerRun, other: HandlerRun) -> bool:
    return one.began_ms < (other.ended_ms or one.began_ms) and other.began_ms < (one.ended_ms or other.began_ms)


__all__ = ["NO_RUN", "AttemptChecks"]
