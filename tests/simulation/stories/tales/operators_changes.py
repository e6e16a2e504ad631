"""What operators search, redrive, purge, migrate and set, and what the table keeps of it."""

import math
import time
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.simulation.actors.api_gateway import ask
from tests.simulation.actors.operator_objects import configurator, purger, redriver
from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.stories.operator_tools import auditor, each, set_setting, spaced
from tests.simulation.stories.stage import BOB, TENANT, Stage
from tidemill import composition
from tidemill.application.audit import Outcome
from tidemill.application.group_order import in_group_order
from tidemill.application.health import HealthChecks
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.application.job_search import JobSearch
from tidemill.application.migration import Migration, Progress
from tidemill.application.pace import Pace
from tidemill.application.redrive_probes import Probes, cause_of
from tidemill.aws import clients
from tidemill.domain.job import DeathReason
from tidemill.domain.states import State
from tidemill.dynamodb import job_sample
from tidemill.dynamodb.attention_counts import AttentionCounts
from tidemill.dynamodb.job_scan import DynamoJobScan
from tidemill.names import Lane
from tidemill.sqs import queue_depth
from tidemill.system import clock


def dead_jobs_that_are_redriven_by_selection(stage: Stage) -> None:
    for key in spaced(stage, "12"):
        stage.post("/jobs", {"type": "sim.permanent", "payload": {}, "tags": [f"t{key}"]}, key=key)
    stage.passes(5)

    def act() -> object:
        redrive = redriver()
        dead = [*redrive.dead_jobs(ANY_JOB)]
        tagged = [*redrive.dead_jobs(JobFilter(tag="t2", types=["sim.permanent"]))]
        named = [*redrive.dead_jobs(JobFilter(tenant=TENANT, ids=[job.id for job in dead], error="PermanentJobError"))]
        none = [
            *redrive.dead_jobs(JobFilter(deaths=[DeathReason.UNDELIVERABLE])),
            *redrive.dead_jobs(JobFilter(tenant=BOB)),
        ]
        told = each(tagged, lambda job: redrive.redrive(job, by="eve", reason="it is repaired"))
        again = each(tagged, lambda job: redrive.redrive(job, by="bob"))
        return [[job.id for job in jobs] for jobs in (dead, tagged, named, none)], told, again

    stage.operate("redrives the dead jobs of a tag", act)


def a_redrive_with_probes(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.repaired", "payload": {"count": 1}}, key="1")
    stage.post("/jobs", {"type": "sim.permanent", "payload": {}}, key="2")
    stage.passes(65)

    def act() -> object:
        redrive, began, verdicts = redriver(), clock.now(), list[object]()
        probes = Probes(
            store=composition.parts().store, clock=clock.now, pause=time.sleep, timeout=timedelta(seconds=7)
        )
        for job in probes.choose(in_group_order(redrive.dead_jobs(ANY_JOB, began=began))):
            if redrive.redrive(job, by="eve"):
                probes.redriven(job)
        probes.wait(lambda probe: verdicts.append([cause_of(probe.job), probe.verdict]))
        rest = [job.id for job in probes.approved(in_group_order(redrive.dead_jobs(ANY_JOB, began=began)))]
        return verdicts, rest, probes.held, probes.all_succeeded

    stage.operate("redrives with probes", act)


def a_redrive_of_groups_with_probes(stage: Stage) -> None:
    """Two of a group are repaired. One probe takes too long, and keeps what is behind it in its group dead."""
    bodies = (
        {"type": "sim.repaired", "payload": {"count": 1}, "group": "g"},
        {"type": "sim.repaired", "payload": {"count": 1}, "group": "g"},
        {"type": "sim.permanent", "payload": {"seconds": 20}, "group": "h"},
        {"type": "sim.repaired", "payload": {"count": 1}, "group": "h"},
        {"type": "sim.repaired", "payload": {"count": 1}},
    )
    for key, body in zip(spaced(stage, "12345"), bodies, strict=True):
        stage.post("/jobs", body, key=key)
    stage.passes(65)

    def act() -> object:
        redrive, began, told = redriver(), clock.now(), list[object]()
        probes = Probes(
            store=composition.parts().store, clock=clock.now, pause=time.sleep, timeout=timedelta(seconds=7)
        )
        chosen = probes.choose(in_group_order(redrive.dead_jobs(ANY_JOB, began=began)))
        told.append([job.id for job in chosen])
        for job in chosen:
            if redrive.redrive(job, by="eve"):
                probes.redriven(job)
        probes.wait(lambda probe: told.append([cause_of(probe.job), probe.verdict]))
        rest = [job.id for job in probes.approved(in_group_order(redrive.dead_jobs(ANY_JOB, began=began)))]
        return told, rest, probes.held, probes.all_succeeded

    stage.operate("redrives with probes", act)


def a_dead_job_with_another_payload(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.blocking", "payload": {"fails": 2}}, key="1")
    stage.passes(20)

    def act() -> object:
        redrive = redriver()
        payload = '{"fails":0,"padding":"' + "x" * 400 + '"}'
        return each(
            [*redrive.dead_jobs(ANY_JOB)],
            lambda job: redrive.redrive_with(
                job, payload, composition.parts().payloads, by="eve", reason="wrong count"
            ),
        )

    stage.operate("redrives a job with another payload", act)
    stage.passes(5)


def a_search_of_jobs_and_its_cursor(stage: Stage) -> None:
    for key in spaced(stage, "123"):
        stage.post("/jobs", {"type": "sim.plain", "payload": {}, "tags": [f"t{key}"]}, key=key)
    stage.post("/jobs", {"type": "sim.effect", "payload": {}, "delay_seconds": 2_000}, key="4", tenant=BOB)

    def act() -> object:
        search = JobSearch(
            DynamoJobScan(clients.dynamodb(), table=JOBS_TABLE), Pace(1, clock=clock.now, pause=time.sleep)
        )

        def found(
            wanted: JobFilter, after: str | None = None, most: int | None = None, units: float = math.inf
        ) -> object:
            steps = search.steps(wanted, now=clock.now(), after=after, most_jobs=most, most_units=units)
            return [[[job.id for job in step.jobs], step.cursor, step.items, step.read_units] for step in steps]

        all_jobs = composition.parts().store.get_many([(BOB, "x")])
        at = clock.now()
        return {
            "no such": all_jobs,
            "two": found(ANY_JOB, most=2),
            "a tag": found(JobFilter(tag="t2", states=[State.QUEUED])),
            "a type of a tenant": found(JobFilter(types=["sim.effect"], tenant=BOB, until=at)),
            "some units": found(JobFilter(since=at - timedelta(seconds=1), ended_since=at), units=1),
        }

    stage.passes(0.2)
    stage.operate("searches", act)


def ended_jobs_that_are_purged(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.blocking", "payload": {"fails": 2}, "group": "g"}, key="1")
    stage.post("/jobs", {"type": "sim.plain", "payload": {"seconds": 9}, "group": "g"}, key="2")
    stage.passes(20)

    def act() -> object:
        purge = purger().purge
        dead = [*composition.parts().store.dead()]
        fits = JobFilter(ended_until=clock.now(), deaths=[DeathReason.EXHAUSTED])
        return [job in fits for job in dead], each(dead, purge), each(dead, purge)

    stage.operate("purges the dead job", act)
    stage.passes(3)


def payloads_that_are_migrated(stage: Stage) -> None:
    _submit_late(stage, 4)

    def change(payload: dict[str, Any]) -> dict[str, Any]:
        if payload["count"] == 1:
            return {**payload, "seconds": 1.5}
        if payload["count"] == 2:
            raise KeyError("colour")
        return payload if payload["count"] == 0 else {**payload, "count": payload["count"] + 1}

    def act() -> object:
        told, failed = list[object](), list[object]()
        for dry in (True, False):
            deadline = clock.now() + timedelta(seconds=60)
            done = (
                composition.parts()
                .migrator(rate=2, read_units=4)
                .run(
                    Migration(type="sim.effect", ended=False, dry_run=dry),
                    change,
                    Progress(),
                    time_left=partial(_left, deadline),
                    save=told.append,
                    failed=lambda *failure: failed.append(failure),
                )
            )
            told.append(done)
        return told, failed

    stage.operate("migrates the payloads", act)


def a_migration_that_goes_on(stage: Stage) -> None:
    """Its first run has no time for the second job, and keeps its progress as JSON."""
    _submit_late(stage, 2)

    def act() -> object:
        told, progress, migrator = list[object](), Progress(), composition.parts().migrator(rate=1, read_units=4)
        for seconds in (1.5, 60, 60):
            deadline = clock.now() + timedelta(seconds=seconds)
            done = migrator.run(
                Migration(type="sim.effect", ended=False, dry_run=False),
                lambda payload: {**payload, "key": "new"},
                progress,
                time_left=partial(_left, deadline),
                save=lambda _: None,
                failed=lambda *_: None,
            )
            told.append(done.as_json())
            progress = Progress.of_json(done.as_json())
            progress = progress.next_pass() if progress.complete else progress
        return told

    stage.operate("migrates the payloads in two runs, and again", act)


def commands_in_the_audit_log(stage: Stage) -> None:
    def act() -> object:
        audit, sleep = auditor(), stage.world.scheduler.sleep
        first = audit.begin("redrive", by="eve", reason="repaired", options={"type": "sim.plain", "limit": 3})
        sleep(1_500)
        audit.end(first, Outcome.DONE, {"redriven": 2, "skipped": 1})
        began = clock.now()
        audit.begin("purge", by="bob", reason="", options={"older_than": "30d"})
        sleep(500)
        third = audit.begin("cancel", by="eve", reason="", options={})
        audit.end(third, Outcome.FAILED, {})
        sleep(500)
        log = audit._log
        return [*log.entries()], [*log.entries(since=began)], [*log.entries(before=began)]

    stage.operate("gives commands", act)


def settings_that_are_refused_and_their_history(stage: Stage) -> None:
    set_setting(stage, "flags.colour", "blue", seconds=5, wait=1)

    def act() -> object:
        changes = configurator()
        seen = changes.read()

        def tried(name: str, value: object, until: timedelta | None = None) -> object:
            try:
                return changes.set(
                    seen, name, value, by="eve", reason="", until=None if until is None else clock.now() + until
                ).version
            except Exception as error:  # noqa: BLE001 - the answer
                return error

        told = [
            tried("colour", 1),
            tried("flags.", 1),
            tried("flags.a", math.nan),
            tried("flags.a", "x" * 40_000),
            tried("flags.a", 1, until=timedelta(0)),
            tried("pauses.type=sim.plain", {"rate": 0}),
            tried("pauses.type=sim.plain", {"fast": True}),
            tried("pauses.colour=blue", {}),
            tried("breakers.payments", {"force": "half-open"}),
            tried("quotas.default", {"count": 1}),
            tried("caps.default", 0),
            tried("weights.default", 2),
            tried("types.sim.plain.max_attempts", 0),
            tried("types.sim.plain.colour", 0),
            tried("limits.carrier.rate_per_key", {"count": 1}),
            tried("strain.level", 4),
            tried("governor", True),
            tried("flags.size", {"cm": 3}),
            tried("flags.size", {"cm": 4}),
        ]
        present = changes.read()
        told += [present.flags(clock.now()), present.version]
        stage.world.scheduler.sleep(5_000)
        removed = changes.remove(present, "flags.size", by="bob", reason="not needed")
        return told, removed.document, [*changes.history()], changes.read().flags(clock.now())

    stage.operate("tries settings", act)


def the_state_of_a_deployment(stage: Stage) -> None:
    for key in spaced(stage, "12"):
        stage.post("/jobs", {"type": "sim.permanent", "payload": {}}, key=key)
    stage.post("/jobs", {"type": "sim.effect", "payload": {}, "delay_seconds": 2_000}, key="4", tenant=BOB)
    stage.passes(4)
    stage.post("/jobs", {"type": "sim.steps", "payload": {"count": 1}, "delay_seconds": 30}, key="5", tenant=BOB)
    stage.passes(1)
    stage.world.dynamodb.page_items = 1_000

    def act() -> object:
        client, queues = clients.dynamodb(), composition.parts().lane_urls
        counts = AttentionCounts(client, table=JOBS_TABLE)
        return {
            "dead": counts.newest(State.DEAD, most=1),
            "scheduled": counts.jobs(State.SCHEDULED),
            "owed": counts.owed(),
            "sample": job_sample.read(client, table=JOBS_TABLE),
            "lanes": {lane: queue_depth.backlog(clients.sqs(), urls.queue) for lane, urls in queues.items()},
            "letters": queue_depth.backlog(clients.sqs(), queues[Lane.DEFAULT].dead_letters),
            "delay": [
                queue_depth.delay(clients.sqs(), clients.cloudwatch(), url, now=clock.now())
                for url in (queues[Lane.BULK].queue, queues[Lane.DEFAULT].dead_letters)
            ],
        }

    stage.operate("looks at the state", act)


def the_health_of_lanes(stage: Stage) -> None:
    def act() -> object:
        began = clock.now()
        marks = {"default": began, "critical": began - timedelta(minutes=4)}
        checks = HealthChecks(
            canaries=lambda: dict(marks), lanes=("critical", "default", "bulk"), broken_job_files=1, clock=clock.now
        )
        first = checks.read()
        marks["bulk"] = began
        stage.world.scheduler.sleep(4_999)
        kept = checks.read()
        stage.world.scheduler.sleep(55_001)
        return first, kept == first, checks.read(), checks.read().ok

    stage.operate("asks for the health", act)
    stage.operate("asks over HTTP", lambda: ask(stage.world, "submit", "GET", "/health", tenant=TENANT))


def _submit_late(stage: Stage, jobs: int) -> None:
    for number in range(jobs):
        stage.post(
            "/jobs", {"type": "sim.effect", "payload": {"count": number}, "delay_seconds": 2_000}, key=f"{number}"
        )


def _left(deadline: datetime) -> timedelta:
    return deadline - clock.now()
