"""The demo: real clicks and misbehaving jobs through the deployed app, a worker killed, and every figure reconciled."""

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from demo import observe, planned_jobs
from demo.access_log import Click, Skipped
from demo.checks import Checks
from demo.click_traffic import Clicker, redirected
from demo.planned_jobs import Planned
from demo.recount import Count, recount
from demo.screen import Screen
from shortener import names as shortener
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.states import State
from tidemill.local.lifecycle import App
from tidemill.names import LARGEST_BODY_BYTES, Output

#: Every so many-th click and job is sent twice with the same key.
REPEATED_EVERY: Final = 10
#: A caller's mistakes: what is sent, and the status that must come back.
RUBBISH: Final[Sequence[tuple[bytes, str, HTTPStatus]]] = (
    (b"{", "application/json", HTTPStatus.BAD_REQUEST),
    (b"{}", "text/plain", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (b'{"type": "' + b"x" * LARGEST_BODY_BYTES + b'"}', "application/json", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (b'{"type": "no.such.type"}', "application/json", HTTPStatus.UNPROCESSABLE_ENTITY),
    (b'{"type": "demo.broken", "payload": {"order": "x"}}', "application/json", HTTPStatus.UNPROCESSABLE_ENTITY),
)


@dataclass(slots=True)
class Sent:
    """What the callers were told."""

    clicks: list[Click]
    skipped: Counter[Skipped]
    planned: list[Planned] = field(default_factory=list)
    replayed: int = 0


class Scenario:
    """One run against `app`. `checks` holds what was found."""

    def __init__(self, app: App, screen: Screen) -> None:
        self._app = app
        self._screen = screen
        self.checks = Checks()

    def play(self, entries: Sequence[Click | Skipped], *, of: str) -> None:
        """`entries` is what was read of the log named `of`."""
        sent = self._sort(entries, of)
        self._make_links(sent)
        self._kill_a_worker(sent)
        self._submit_misbehaving(sent)
        self._submit_orderly(sent)
        self._refuse_rubbish()
        self._click(sent)
        self._screen.step("waiting until every job has ended")
        ended = observe.await_jobs(self._app, done=observe.terminal, show=self._screen.progress)
        self._reconcile_jobs(sent, ended)
        self._reconcile_clicks(sent)
        self._mend_and_redrive(ended)

    def _sort(self, entries: Sequence[Click | Skipped], of: str) -> Sent:
        clicks = [entry for entry in entries if isinstance(entry, Click)]
        skipped = Counter(entry for entry in entries if isinstance(entry, Skipped))
        self._screen.step(f"{of}: {len(entries)} lines, {len(clicks)} clicks")
        for reason, count in skipped.items():
            self._screen.note(f"{count} lines left out: {reason}")
        return Sent(clicks=clicks, skipped=skipped)

    def _make_links(self, sent: Sent) -> None:
        codes = sorted({click.code for click in sent.clicks})
        self._screen.step(f"making {len(codes)} short links")
        for code in codes:
            answer = self._post(
                "/links", {"code": code, "url": f"https://example.com/{code}"}, api=shortener.Output.API_ID
            )
            if answer != HTTPStatus.CREATED:
                raise observe.StuckError(f"POST /links answered {answer}")

    def _kill_a_worker(self, sent: Sent) -> None:
        """Slow jobs, and a SIGKILL for the process that runs some of them. Their messages come back by themselves."""
        self._screen.step(f"killing a worker in the middle of a batch of {planned_jobs.SLOW} slow jobs")
        self._submit(sent, list(planned_jobs.slow()))
        observe.await_jobs(
            self._app,
            done=lambda found: any(job.state is State.RUNNING for job in found),
            show=self._screen.progress,
        )
        pid = self._app.kill_worker("work")
        self._screen.note(f"process {pid} is gone; its jobs run again when their messages are visible again")

    def _submit_misbehaving(self, sent: Sent) -> None:
        planned = list(planned_jobs.planned())
        self._screen.step(f"submitting {len(planned)} jobs that misbehave, and some of them twice")
        self._submit(sent, planned)
        again = planned[::REPEATED_EVERY]
        sent.replayed += len(again)
        answers = [self._post_job(plan) for plan in again]
        self.checks.equal("jobs sent again with their keys, by status", Counter(answers), {200: len(again)})

    def _submit_orderly(self, sent: Sent) -> None:
        self._screen.step("submitting a group, a job longer than one run may be, and one for tomorrow")
        self._submit(sent, list(planned_jobs.orderly()))
        listed = [
            json.loads(line) for line in self._app.tidemill("list", "--state=scheduled", "--json").stdout.splitlines()
        ]
        self.checks.equal("scheduled jobs listed", len(listed), planned_jobs.SCHEDULED)
        for job in listed:
            self._screen.note(f"job {job['id']} waits until {job['due']}; it is cancelled")
        self._app.tidemill("cancel", *(job["id"] for job in listed), "--yes")

    def _refuse_rubbish(self) -> None:
        self._screen.step("sending bad input")
        before = len(observe.all_jobs(self._app))
        found = [self._app.request("POST", "/jobs", body=body, content_type=kind).status for body, kind, _ in RUBBISH]
        self.checks.equal("bad input, by status", found, [status.value for _, _, status in RUBBISH])
        self.checks.equal("jobs stored before and after bad input", len(observe.all_jobs(self._app)), before)

    def _click(self, sent: Sent) -> None:
        again = sent.clicks[::REPEATED_EVERY]
        self._screen.step(f"replaying {len(sent.clicks)} clicks, and {len(again)} of them a second time")
        clicker = Clicker(self._app.url_of(shortener.Output.API_ID))
        with self._screen.bar("clicks", len(sent.clicks) + len(again)) as advance:
            answers = clicker.send_all(sent.clicks, on_answer=advance)
            repeats = clicker.send_all(again, on_answer=advance)
        sent.replayed += len(again)
        self.checks.equal("clicks redirected", redirected(answers), len(sent.clicks))
        self.checks.equal("clicks sent again: redirected", redirected(repeats), len(again))
        self.checks.equal("clicks sent again: replayed", sum(answer.replayed for answer in repeats), len(again))
        self.checks.equal("clicks sent once: replayed", sum(answer.replayed for answer in answers), 0)

    def _reconcile_jobs(self, sent: Sent, ended: Sequence[Job]) -> None:
        self._screen.outcome(ended, replayed=sent.replayed)
        accepted = len(sent.clicks) + len(sent.planned)
        self.checks.equal("jobs accepted are jobs stored", len(ended), accepted)
        states = Counter((job.type, job.state) for job in ended)
        self.checks.equal("clicks enriched", states["click.enrich", State.SUCCEEDED], len(sent.clicks))
        self.checks.equal("flaky jobs succeeded", states["demo.flaky", State.SUCCEEDED], planned_jobs.FLAKY)
        self.checks.equal("slow jobs succeeded", states["demo.slow", State.SUCCEEDED], planned_jobs.SLOW)
        self._reconcile_orderly(ended)
        deaths = Counter(f"{job.type}, {job.death}" for job in ended if job.state is State.DEAD)
        expected = {
            f"demo.poison, {DeathReason.PERMANENT}": planned_jobs.POISON,
            f"demo.broken, {DeathReason.EXHAUSTED}": planned_jobs.BROKEN,
        }
        self.checks.equal("the dead, by type and reason", deaths, expected)
        attempts = {job.attempt for job in ended if job.type == "demo.flaky" and job.state is not State.CANCELLED}
        self.checks.equal("attempts of the flaky jobs", attempts, {planned_jobs.FLAKY_FAILURES + 1})
        again = sum(job.attempt > 1 for job in ended if job.type == "demo.slow")
        self.checks.true("jobs of the killed worker ran again", again > 0)
        dead = planned_jobs.POISON + planned_jobs.BROKEN
        self.checks.equal("letters of the dead", observe.await_letters(self._app, dead), dead)

    def _reconcile_orderly(self, ended: Sequence[Job]) -> None:
        group = sorted((job for job in ended if job.group), key=lambda job: job.finished_at or job.created_at)
        self.checks.equal(
            "the group ended in the order accepted",
            [job.sequence for job in group],
            list(range(1, planned_jobs.GROUP + 1)),
        )
        (long,) = (job for job in ended if job.type == "demo.steps")
        self._screen.note(f"invocations that the long job took: {long.hops + 1}, each from the checkpoint of the last")
        self.checks.true("the long job outlived an invocation", long.hops > 0)
        self.checks.equal(
            "its steps done, of how many", (long.progress_done, long.progress_total), (planned_jobs.STEPS,) * 2
        )
        cancelled = [job.type for job in ended if job.state is State.CANCELLED]
        self.checks.equal("jobs cancelled", len(cancelled), planned_jobs.SCHEDULED)

    def _reconcile_clicks(self, sent: Sent) -> None:
        self._screen.step("recounting countries and browsers from the log")
        counted = Count()
        for code in sorted({click.code for click in sent.clicks}):
            counted.add(self._app.request("GET", f"/links/{code}/stats", api=shortener.Output.API_ID).json())
        expected = recount(sent.clicks)
        self._screen.tops(counted)
        self.checks.equal("clicks counted", counted.clicks, expected.clicks)
        self.checks.equal("clicks by country", counted.countries, expected.countries)
        self.checks.equal("clicks by browser", counted.browsers, expected.browsers)

    def _mend_and_redrive(self, ended: Sequence[Job]) -> None:
        self._screen.step("mending the failing types, and redriving their jobs with the command line")
        self._app.set_function_variable("work", "TIDEMILL_DEMO_MENDED", "yes")
        self._app.tidemill("redrive", "--all", "--yes")
        self._app.tidemill("redrive", "--all", "--yes")  # safe to repeat
        found = observe.await_jobs(self._app, done=observe.terminal, show=self._screen.progress)
        states = Counter(job.state for job in found)
        expected = {State.SUCCEEDED: len(ended) - planned_jobs.SCHEDULED, State.CANCELLED: planned_jobs.SCHEDULED}
        self.checks.equal("jobs after the redrive", states, expected)
        redrives = Counter(len(job.redrives) for job in found if job.redrives)
        self.checks.equal("redriven, by number of redrives", redrives, {1: planned_jobs.POISON + planned_jobs.BROKEN})
        self.checks.equal("letters left", observe.await_letters(self._app, 0), 0)

    def _submit(self, sent: Sent, planned: list[Planned]) -> None:
        with ThreadPoolExecutor(len(planned)) as pool:
            answers = list(pool.map(self._post_job, planned))
        self.checks.equal(f"{planned[0].type} and its like, by status", Counter(answers), {202: len(planned)})
        sent.planned += planned

    def _post_job(self, plan: Planned) -> int:
        return self._post("/jobs", {"type": plan.type, "payload": plan.payload, **plan.asked}, key=plan.key)

    def _post(self, path: str, body: dict[str, Any], *, key: str | None = None, api: str = Output.API_ID) -> int:
        return self._app.request("POST", path, body=json.dumps(body).encode(), key=key, api=api).status
