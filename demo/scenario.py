"""The steps of the demo: misbehaving jobs, a killed worker and real clicks, then a check of every figure."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
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
from tidemill.local.signed_caller import Answer
from tidemill.names import EVENT_TYPE, FLOW_TYPE, LARGEST_BODY_BYTES, Output

#: One click in this many, and one misbehaving job in this many, is sent twice with the same key.
REPEATED_EVERY: Final = 10
#: Invalid requests: the body, the content type, and the expected status.
INVALID_REQUESTS: Final[Sequence[tuple[bytes, str, HTTPStatus]]] = (
    (b"{", "application/json", HTTPStatus.BAD_REQUEST),
    (b"{}", "text/plain", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (b'{"type": "' + b"x" * LARGEST_BODY_BYTES + b'"}', "application/json", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (b'{"type": "no.such.type"}', "application/json", HTTPStatus.UNPROCESSABLE_ENTITY),
    (b'{"type": "demo.broken", "payload": {"order": "x"}}', "application/json", HTTPStatus.UNPROCESSABLE_ENTITY),
)


@dataclass(slots=True)
class Sent:
    """The clicks and jobs that were sent, and the number of repeats that were answered as replayed."""

    clicks: list[Click]
    skipped: Counter[Skipped]
    planned: list[Planned] = field(default_factory=list)
    events: int = 0
    batches: list[str] = field(default_factory=list)
    flows: list[str] = field(default_factory=list)
    replayed: int = 0


class Scenario:
    """One run against `app`. `checks` holds the results."""

    def __init__(self, app: App, screen: Screen) -> None:
        self._app = app
        self._screen = screen
        self.checks = Checks()

    def play(self, entries: Sequence[Click | Skipped], *, log_name: str) -> None:
        """Play all steps with the `entries` of the log `log_name`."""
        sent = self._sort(entries, log_name)
        self._make_links(sent)
        self._kill_a_worker(sent)
        self._submit_misbehaving(sent)
        self._submit_well_behaved(sent)
        self._publish_events(sent)
        self._fill_a_batch(sent)
        self._start_a_flow(sent)
        self._send_invalid_requests()
        self._click(sent)
        self._screen.step("waiting for all jobs to end")
        ended = observe.await_jobs(self._app, done=observe.terminal, show=self._screen.progress)
        self._check_jobs(sent, ended)
        self._check_clicks(sent)
        self._fix_and_redrive(ended)
        self._check_flows(sent, dict.fromkeys(planned_jobs.NODES, "succeeded"), when="after it")

    def _sort(self, entries: Sequence[Click | Skipped], log_name: str) -> Sent:
        clicks = [entry for entry in entries if isinstance(entry, Click)]
        skipped = Counter(entry for entry in entries if isinstance(entry, Skipped))
        self._screen.step(f"reading {log_name}: {len(entries)} lines, {len(clicks)} clicks")
        for reason, count in skipped.items():
            self._screen.note(f"skipped {count} lines: {reason}")
        return Sent(clicks=clicks, skipped=skipped)

    def _make_links(self, sent: Sent) -> None:
        codes = sorted({click.code for click in sent.clicks})
        self._screen.step(f"creating {len(codes)} short links")
        for code in codes:
            answer = self._post(
                "/links", {"code": code, "url": f"https://example.com/{code}"}, api=shortener.Output.API_ID
            )
            if answer != HTTPStatus.CREATED:
                raise observe.NoProgressError(f"POST /links answered {answer}")

    def _kill_a_worker(self, sent: Sent) -> None:
        """Kill a worker process with SIGKILL while it runs slow jobs. SQS delivers their messages again."""
        self._screen.step(f"submitting {planned_jobs.SLOW} slow jobs and killing their worker")
        self._submit(sent, list(planned_jobs.slow()))
        observe.await_jobs(
            self._app,
            done=lambda found: any(job.state is State.RUNNING for job in found),
            show=self._screen.progress,
        )
        pid = self._app.kill_worker("work")
        self._screen.note(f"killed process {pid}; its jobs run again when their messages are visible again")

    def _submit_misbehaving(self, sent: Sent) -> None:
        planned = list(planned_jobs.misbehaving())
        self._screen.step(f"submitting {len(planned)} jobs that fail on purpose, some of them twice")
        self._submit(sent, planned)
        again = planned[::REPEATED_EVERY]
        sent.replayed += len(again)
        answers = [self._post_job(plan) for plan in again]
        self.checks.equal("jobs sent again with the same key, by HTTP status", Counter(answers), {200: len(again)})

    def _submit_well_behaved(self, sent: Sent) -> None:
        self._screen.step("submitting a group, a job that needs several invocations, and a job for tomorrow")
        self._submit(sent, list(planned_jobs.well_behaved()))
        listed = [
            json.loads(line) for line in self._app.tidemill("list", "--state=scheduled", "--json").stdout.splitlines()
        ]
        self.checks.equal("scheduled jobs listed", len(listed), planned_jobs.SCHEDULED)
        for job in listed:
            self._screen.note(f"job {job['id']} is due at {job['due']}; cancelling it")
        self._app.tidemill("cancel", *(job["id"] for job in listed), "--yes")

    def _publish_events(self, sent: Sent) -> None:
        """Publish each event twice with one key."""
        planned = list(planned_jobs.events())
        consumers = len(planned_jobs.CONSUMERS)
        self._screen.step(f"publishing {len(planned)} events to {consumers} consumers, one of them broken, all twice")
        answers = [Counter(self._publish(event) for event in planned) for _ in range(2)]
        self.checks.equal("events published, by HTTP status", answers[0], {202: len(planned)})
        self.checks.equal("events published again with the same key, by HTTP status", answers[1], {200: len(planned)})
        sent.events += len(planned)
        sent.replayed += len(planned)

    def _fill_a_batch(self, sent: Sent) -> None:
        """Open it, fill it and close it. The jobs come a second time after the close."""
        rows = list(planned_jobs.rows())
        self._screen.step(f"filling a batch with {len(rows)} jobs, which come a second time after it was closed")
        callback = {"type": planned_jobs.CALLBACK, "payload": {"name": "demo"}}
        opened = self._request("/batches", {"on_success": callback}, key="import")
        batch = opened.json()["id"]
        jobs = [{"type": row.type, "payload": row.payload, "idempotency_key": row.key, "batch": batch} for row in rows]
        filled = self._request("/jobs/batch", {"jobs": jobs}).json()["jobs"]
        closed = [self._request(f"/batches/{batch}/close").status for _ in range(2)]
        again = self._request("/jobs/batch", {"jobs": jobs}).json()["jobs"]
        self.checks.equal("batch opened, and closed twice, by HTTP status", [opened.status, *closed], [202, 200, 200])
        for name, answers, status in (("added", filled, 202), ("sent again", again, 200)):
            found = Counter(answer["status"] for answer in answers)
            self.checks.equal(f"jobs {name} to the batch, by HTTP status", found, {status: len(rows)})
        sent.planned += rows
        sent.batches.append(batch)
        sent.replayed += len(rows)

    def _start_a_flow(self, sent: Sent) -> None:
        """Start it twice with one key."""
        nodes = list(planned_jobs.nodes())
        self._screen.step(f"starting a flow of {len(nodes)} nodes, one of them broken, twice")
        answers = [self._request("/flows", {"nodes": nodes}, key="parcel") for _ in range(2)]
        self.checks.equal("flow started twice, by HTTP status", [answer.status for answer in answers], [202, 200])
        sent.flows += {answer.json()["id"] for answer in answers}
        sent.replayed += 1

    def _send_invalid_requests(self) -> None:
        self._screen.step("sending invalid requests")
        before = self._count_submitted()
        found = [
            self._app.request("POST", "/jobs", body=body, content_type=kind).status
            for body, kind, _ in INVALID_REQUESTS
        ]
        self.checks.equal(
            "invalid requests, by HTTP status", found, [status.value for _, _, status in INVALID_REQUESTS]
        )
        self.checks.equal("jobs stored before and after the invalid requests", self._count_submitted(), before)

    def _count_submitted(self) -> int:
        """Without those that come from other jobs: these may still come."""
        return sum(job.parent is None and job.flow is None for job in observe.all_jobs(self._app))

    def _click(self, sent: Sent) -> None:
        again = sent.clicks[::REPEATED_EVERY]
        self._screen.step(f"sending {len(sent.clicks)} clicks, and {len(again)} of them a second time")
        clicker = Clicker(self._app.url_of(shortener.Output.API_ID))
        with self._screen.bar("clicks", len(sent.clicks) + len(again)) as advance:
            answers = clicker.send_all(sent.clicks, on_answer=advance)
            repeats = clicker.send_all(again, on_answer=advance)
        sent.replayed += len(again)
        self.checks.equal("clicks redirected", redirected(answers), len(sent.clicks))
        self.checks.equal("clicks sent again: redirected", redirected(repeats), len(again))
        self.checks.equal("clicks sent again: replayed", sum(answer.replayed for answer in repeats), len(again))
        self.checks.equal("clicks sent once: replayed", sum(answer.replayed for answer in answers), 0)

    def _check_jobs(self, sent: Sent, ended: Sequence[Job]) -> None:
        self._screen.outcome(ended, replayed=sent.replayed)
        of_events = sent.events * (1 + len(planned_jobs.CONSUMERS))
        # Each batch is a job, and so is its callback.
        of_batches = 2 * len(sent.batches)
        # And so is each flow. A node has a document also if it does not start.
        of_flows = len(sent.flows) * (1 + len(planned_jobs.NODES))
        accepted = len(sent.clicks) + len(sent.planned) + of_events + of_batches + of_flows
        self.checks.equal("jobs stored, against jobs accepted", len(ended), accepted)
        states = Counter((job.type, job.state) for job in ended)
        self.checks.equal("clicks enriched", states["click.enrich", State.SUCCEEDED], len(sent.clicks))
        self.checks.equal("flaky jobs succeeded", states["demo.flaky", State.SUCCEEDED], planned_jobs.FLAKY)
        self.checks.equal("slow jobs succeeded", states["demo.slow", State.SUCCEEDED], planned_jobs.SLOW)
        self._check_well_behaved(ended)
        self._check_events(ended)
        self._check_batches(sent, ended)
        self._check_flows(sent, planned_jobs.NODES_AT_FIRST, when="before the fix")
        deaths = Counter(f"{job.type}, {job.death}" for job in ended if job.state is State.DEAD)
        expected = {
            f"demo.poison, {DeathReason.PERMANENT}": planned_jobs.POISON,
            f"demo.broken, {DeathReason.EXHAUSTED}": planned_jobs.BROKEN + len(sent.flows),
            f"{FLOW_TYPE}, {DeathReason.GAVE_UP}": len(sent.flows),
            f"{planned_jobs.BROKEN_CONSUMER}, {DeathReason.PERMANENT}": planned_jobs.EVENTS,
        }
        self.checks.equal("dead jobs, by type and reason", deaths, expected)
        attempts = {job.attempt for job in ended if job.type == "demo.flaky" and job.state is not State.CANCELLED}
        self.checks.equal("attempts of the flaky jobs", attempts, {planned_jobs.FLAKY_FAILURES + 1})
        again = sum(job.attempt > 1 for job in ended if job.type == "demo.slow")
        self.checks.true("jobs of the killed worker ran again", again > 0)
        dead = observe.await_dead_letter_messages(self._app, planned_jobs.DEAD)
        self.checks.equal("dead-letter messages", dead, planned_jobs.DEAD)

    def _check_well_behaved(self, ended: Sequence[Job]) -> None:
        group = sorted((job for job in ended if job.group.key), key=lambda job: job.finished_at or job.created_at)
        self.checks.equal(
            "sequence numbers of the group, in the order of completion",
            [job.group.sequence for job in group],
            list(range(1, planned_jobs.GROUP + 1)),
        )
        (long,) = (job for job in ended if job.type == "demo.steps")
        self._screen.note(f"the long job took {long.hops + 1} invocations; each later one continued from a checkpoint")
        self.checks.true("the long job took more than one invocation", long.hops > 0)
        self.checks.equal(
            "steps of the long job: done, total", (long.progress.done, long.progress.total), (planned_jobs.STEPS,) * 2
        )
        cancelled = [job.type for job in ended if job.state is State.CANCELLED and job.flow is None]
        self.checks.equal("jobs cancelled", len(cancelled), planned_jobs.SCHEDULED)

    def _check_events(self, ended: Sequence[Job]) -> None:
        """Each consumer has one job of each event, and the broken one stops no other."""
        events = {job.id for job in ended if job.type == EVENT_TYPE}
        consumed = Counter(job.type for job in ended if job.parent in events)
        self.checks.equal("jobs of consumers", consumed, dict.fromkeys(planned_jobs.CONSUMERS, planned_jobs.EVENTS))
        succeeded = Counter(job.type for job in ended if job.parent in events and job.state is State.SUCCEEDED)
        unbroken = set(planned_jobs.CONSUMERS) - {planned_jobs.BROKEN_CONSUMER}
        self.checks.equal("consumers that succeeded", succeeded, dict.fromkeys(unbroken, planned_jobs.EVENTS))

    def _check_batches(self, sent: Sent, ended: Sequence[Job]) -> None:
        """The callback exists once for each batch, and began after its last job had ended."""
        for batch in sent.batches:
            counts = self._app.request("GET", f"/batches/{batch}").json()["counts"]
            self.checks.equal("jobs of the batch, by state", counts, {State.SUCCEEDED: planned_jobs.ROWS})
            callbacks = [job for job in ended if job.parent == batch]
            self.checks.equal("callbacks of the batch", [job.type for job in callbacks], [planned_jobs.CALLBACK])
            last = max(job.finished_at for job in ended if job.batch == batch and job.finished_at)
            self.checks.true("the callback came after the last job", all(job.created_at >= last for job in callbacks))

    def _check_flows(self, sent: Sent, expected: Mapping[str, str], *, when: str) -> None:
        for flow in sent.flows:
            nodes = self._app.request("GET", f"/flows/{flow}").json()["nodes"]
            found = {node["name"]: node["state"] for node in nodes}
            self.checks.equal(f"nodes of the flow {when}", ", ".join(found.values()), ", ".join(expected.values()))

    def _check_clicks(self, sent: Sent) -> None:
        self._screen.step("checking the counts of countries and browsers against the log")
        counted = Count()
        for code in sorted({click.code for click in sent.clicks}):
            counted.add(self._app.request("GET", f"/links/{code}/stats", api=shortener.Output.API_ID).json())
        expected = recount(sent.clicks)
        self._screen.top_counts(counted)
        self.checks.equal("clicks counted", counted.clicks, expected.clicks)
        self.checks.equal("clicks by country", counted.countries, expected.countries)
        self.checks.equal("clicks by browser", counted.browsers, expected.browsers)

    def _fix_and_redrive(self, ended: Sequence[Job]) -> None:
        self._screen.step("fixing the failing job types, and redriving their dead jobs with the command line")
        self._app.set_function_variable("work", "TIDEMILL_DEMO_FIXED", "yes")
        self._app.tidemill("redrive", "--all", "--yes")
        found = observe.await_jobs(self._app, done=observe.terminal, show=self._screen.progress)
        # A repeat changes nothing: the check below counts one redrive of each job.
        self._app.tidemill("redrive", "--all", "--yes")
        states = Counter(job.state for job in found)
        expected = {State.SUCCEEDED: len(ended) - planned_jobs.SCHEDULED, State.CANCELLED: planned_jobs.SCHEDULED}
        self.checks.equal("jobs after the redrive", states, expected)
        redrives = Counter(len(job.redrives) for job in found if job.redrives)
        self.checks.equal("redriven jobs, by number of redrives", redrives, {1: planned_jobs.DEAD})
        # Reconcile does so too, every five minutes.
        self._app.tidemill("dlq", "sweep", "--yes")
        self.checks.equal("dead-letter messages after the redrive", observe.await_dead_letter_messages(self._app, 0), 0)

    def _submit(self, sent: Sent, planned: list[Planned]) -> None:
        with ThreadPoolExecutor(len(planned)) as pool:
            answers = list(pool.map(self._post_job, planned))
        types = ", ".join(dict.fromkeys(plan.type for plan in planned))
        self.checks.equal(f"{types} submitted, by HTTP status", Counter(answers), {202: len(planned)})
        sent.planned += planned

    def _post_job(self, plan: Planned) -> int:
        return self._post("/jobs", {"type": plan.type, "payload": plan.payload, **plan.options}, key=plan.key)

    def _publish(self, event: Planned) -> int:
        return self._post("/events", {"type": event.type, "data": event.payload}, key=event.key)

    def _post(self, path: str, body: dict[str, Any], *, key: str | None = None, api: str = Output.API_ID) -> int:
        return self._request(path, body, key=key, api=api).status

    def _request(
        self, path: str, body: dict[str, Any] | None = None, *, key: str | None = None, api: str = Output.API_ID
    ) -> Answer:
        content = None if body is None else json.dumps(body).encode()
        return self._app.request("POST", path, body=content, key=key, api=api)
