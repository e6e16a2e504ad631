"""Carries out a redrive: the probes first, then the jobs whose probes succeeded."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, islice

from tidemill.application.control.redrive_probes import Probe, Probes, ProbeVerdict, cause_of
from tidemill.application.groups.group_order import in_group_order
from tidemill.application.job_filter import JobFilter
from tidemill.application.passes.pace import MOST_WRITES_PER_SECOND
from tidemill.cli.control.parallel_writes import ParallelWrites
from tidemill.cli.control.redrive_plan import Plan
from tidemill.cli.control.unreadable_jobs import UnreadableJobs
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import progress_bar, say
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.system import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to redrive, and how."""

    wanted: JobFilter
    limit: int | None
    #: Jobs per second. None: the default.
    rate: int | None
    reason: str
    #: How long to wait for the probes. None: without probes.
    probe_timeout: timedelta | None


class RedriveRun:
    """One redrive. Its counts are exact whenever it stops."""

    def __init__(self, installation: Installation, request: Request, plan: Plan, *, unreadable: UnreadableJobs) -> None:
        self._installation = installation
        self._request = request
        self._plan = plan
        self._began = clock.now()
        rate = request.rate or MOST_WRITES_PER_SECOND
        self._writes = ParallelWrites(self._write, verb="Redrove", rate=rate, unreadable=unreadable)
        #: None for a run of one job, and without probes.
        self.probes: Probes | None = None

    def run(self) -> None:
        # Known before the first write: it may ask STS, and warn.
        _ = self._installation.caller
        try:
            jobs: Iterator[Job] = islice(self._dead(), self._request.limit)
            if (timeout := self._request.probe_timeout) is not None:
                # Select them anew: more jobs may have died since the plan.
                first = list(islice(jobs, 2))
                jobs = chain(first, jobs if len(first) > 1 else ())
                if len(first) > 1:
                    store = self._installation.store
                    self.probes = Probes(store=store, clock=clock.steady, pause=time.sleep, timeout=timeout)
            if self.probes:
                self._probe(self.probes, jobs)
                limit = self._request.limit
                rest = islice(self._dead(), None if limit is None else max(0, limit - self._writes.written))
                jobs = self.probes.approved(rest)
            # The index holds at most that many, also if the filter asks for more than it holds.
            total = self._plan.jobs if self._plan.exact else self._request.limit or self._installation.dead_entries()
            with progress_bar("redriving" if self._plan.exact else "redriving at most", total) as advance:
                for _ in range(self._writes.taken):
                    advance()
                self._writes.run(jobs, advance)
        except BaseException:
            say(
                f"{self._writes.summary} Each job is either dead or redriven, and those that were redriven go on. "
                "Run the command again to continue."
            )
            raise

    @property
    def summary(self) -> str:
        held = self.probes.held if self.probes else 0
        return self._writes.summary + (f" Left {count(held, 'job')} dead." if held else "")

    @property
    def numbers(self) -> dict[str, int]:
        return self._writes.numbers | ({"held": self.probes.held} if self.probes else {})

    @property
    def counts(self) -> dict[str, object]:
        """For a program."""
        counts = self._writes.counts
        if self.probes:
            counts["held"] = self.probes.held
            counts["probes"] = [
                {"type": type_, "error": error, "id": probe.job.id, "verdict": probe.verdict}
                for (type_, error), probe in self.probes.probes.items()
            ]
        return counts

    def raise_for_rest(self) -> None:
        """Raises `CommandError` if jobs are still dead that the command was to redrive."""
        writes = self._writes
        for job in writes.left:
            say_skipped(job.id, f"other writes keep its group {job.group.key} busy")
        if self.probes and not (self.probes.all_succeeded and not self.probes.held):
            failed = sum(probe.verdict is not ProbeVerdict.SUCCEEDED for probe in self.probes.probes.values())
            raise CommandError(
                f"{count(self.probes.held, 'job')} stayed dead: the probe of their error did not succeed, or an "
                "earlier job of their group stayed dead"
                if self.probes.held
                else f"{count(failed, 'probe')} did not succeed; no other job has the same error",
                remedy="`tidemill explain ID` shows what a probe did. Fix the cause, then run the command again; it "
                "probes again. --no-probe redrives without probes.",
            )
        if writes.left_count:
            raise CommandError(
                f"{count(writes.left_count, 'job')} of busy groups could not be redriven",
                remedy="Run the command again.",
            )
        writes.unreadable.raise_for_any()

    def _probe(self, probes: Probes, jobs: Iterator[Job]) -> None:
        chosen = probes.choose(jobs)
        say(f"{count(len(chosen), 'probe')}: one job of each type and error runs first.")
        self._writes.run(chosen)
        say(f"Waiting for the probes, at most {probes.timeout.total_seconds():.0f} s. Ctrl-C does not stop them.")
        probes.wait(_say_verdict)

    def _dead(self) -> Iterator[Job]:
        redriver, wanted = self._installation.redriver, self._request.wanted
        unreadable = self._writes.unreadable.job
        return in_group_order(redriver.dead_jobs(wanted, unreadable=unreadable, began=self._began))

    def _write(self, job: Job) -> bool:
        redriven = self._installation.redriver.redrive(
            job, by=self._installation.caller, reason=self._request.reason, refused=say_why
        )
        if redriven and self.probes:
            self.probes.redriven(job)
        return redriven


def _say_verdict(probe: Probe) -> None:
    type_, error = cause_of(probe.job)
    style = "" if probe.verdict is ProbeVerdict.SUCCEEDED else "bold yellow"
    say(visible(f"Probe {probe.job.id} {probe.verdict}: {type_}, {error}"), style=style)


def say_why(job: Job, current: Job | None) -> None:
    """Say why a job was not redriven. It has changed since it was read."""
    if current is None or current.created_at != job.created_at:
        why = "it has been deleted in the meantime"
    elif current.redrives != job.redrives:
        why = f"{current.redrives[-1].by} has redriven it in the meantime"
    elif current.state is State.DEAD:
        why = "it has expired" if current.generation == job.generation else "it has died again in the meantime"
    else:
        why = f"it is {current.state} now"
    say_skipped(job.id, why)


def say_skipped(job_id: str, why: str) -> None:
    say(visible(f"Skipped {job_id}: {why}"))
