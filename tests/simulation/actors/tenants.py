"""Tenants that read, list, cancel and retry their jobs over HTTP at any time, and try the jobs of other tenants."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.simulation.actors.api_gateway import (
    CONFLICT,
    NOT_FOUND,
    OK,
    UNAVAILABLE,
    UNPROCESSABLE,
    Answer,
    Request,
    ask,
)
from tests.simulation.actors.callers import TAGS, TENANTS, PlannedSubmission
from tests.simulation.actors.probing_operators import EDITABLE, edited
from tests.simulation.checks.migrations import MIGRATED_TYPE, migrated
from tests.simulation.checks.shown_jobs import shows_one_of
from tests.simulation.checks.violation import (
    has_expired,
    number_of,
    require_in_task,
    state_of,
    tags_of,
    tenant_of,
    text_of,
)
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import LARGEST_SKEW_MS
from tests.simulation.world.task_scheduler import BEGINNING_MS
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.domain.states import State
from tidemill.names import OWED_PREFIX, PAYLOAD_PREFIX

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Longest delay of a response, and largest clock skew.
_ABOUT_NOW_MS: Final = 120_000
#: Longest lag of an index without that fault.
_SHORT_LAG_MS: Final = 100
#: A write that the network holds up arrives by then, after the response.
_HELD_UP_MS: Final = 10_000
_MOST_TRIES: Final = 4
_PAUSE_MS: Final = (10, 20_000)
_AS_IT_WAS: Final = "responses show jobs as they were"
_ISOLATED: Final = "no tenant sees another tenant's job"


class Tenants:
    """The tenants of one world. Each response is checked when it arrives."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: Keys of all jobs that ever existed.
        self._known: set[str] = set()
        world.jobs.watchers.append(self._changed)

    def plan(self, until_ms: int) -> None:
        """Draw their requests before that time."""
        world = self._world
        acts: tuple[tuple[Fault, Callable[[str], None]], ...] = (
            (Fault.JOB_READ, self._read_jobs),
            (Fault.TENANT_CONTROLS, self._control),
            (Fault.TENANT_CONTROLS, self._control),
            (Fault.JOBS_LISTED, self._list),
            (Fault.OTHER_TENANT, self._try_as_other_tenant),
        )
        for fault, act in acts:
            if world.faults.occurs(fault):
                at_ms = world.random.randint(world.scheduler.now_ms, until_ms)
                world.scheduler.at(at_ms, self._begin, act, world.random.choice(TENANTS))

    def _begin(self, act: Callable[[str], None], tenant: str) -> None:
        self._world.scheduler.spawn(self._world.process(tenant), lambda: act(tenant))

    def _changed(self, record: Record) -> None:
        """Only the tenant of a job changes it through `control`."""
        key, world = record.keys["pk"]["S"], self._world
        if record.after and "state" in record.after:
            self._known.add(key)
        task = world.scheduler.current
        if task and task.process.name.startswith("control "):
            tenant, _, job_id = key.rpartition("#")
            # The payload of an undo, or its owed deletion. The id of the undo is not in the request.
            if key.startswith(PAYLOAD_PREFIX):
                tenant, job_id = json.loads(key.removeprefix(PAYLOAD_PREFIX))[0], "/undo"
            elif key.startswith(OWED_PREFIX):
                tenant, job_id = json.loads(key.removeprefix(OWED_PREFIX))[1], "/undo"
            # Or the job that undoes the requested one.
            about = {job_id, text_of(record.after, "undoes")} - {""}
            requested = any(
                one.tenant == tenant and any(each in one.path for each in about) and self._may_write(one)
                for one in world.requests
            )
            require_in_task(
                world.scheduler,
                requested or "#" not in key[1:],
                "no tenant changes another tenant's job",
                "changed",
                key,
            )

    def _may_write(self, request: Request) -> bool:
        """The network may hold up a write of a request that has its response by now."""
        if request.answered_ms is None:
            return True
        since_ms = self._world.scheduler.now_ms - request.answered_ms
        return bool(self._world.faults.counted[Fault.HELD_UP]) and since_ms <= _HELD_UP_MS

    # Requests.

    def _read_jobs(self, tenant: str) -> None:
        for planned in self._accepted_submissions(tenant):
            self._answered(planned, lambda path: ask(self._world, "query", "GET", path, tenant=tenant), "")

    def _control(self, tenant: str) -> None:
        """Cancel or retry. Repeat the request if it was not answered, and sometimes if it was."""
        random = self._world.random

        def send(path: str) -> Answer | None:
            return ask(self._world, "control", "POST", path, tenant=tenant)

        for planned in self._accepted_submissions(tenant):
            verb = random.choice(["cancel", "cancel", "retry"])
            done = False
            for _ in range(_MOST_TRIES):
                answer = self._answered(planned, send, verb)
                if answer and done and verb == "cancel":
                    what = f"the second cancel was answered with {answer.status}"
                    self._require(answer.status != CONFLICT, "a cancelled job stays cancelled", what, _key(planned))
                done = done or bool(answer and answer.status == OK and answer.body["state"] == State.CANCELLED)
                if answer and not self._world.faults.occurs(Fault.CONTROL_REPEATED):
                    break
                self._world.scheduler.sleep(random.randint(*_PAUSE_MS))

    def _try_as_other_tenant(self, tenant: str) -> None:
        """Another tenant gets 404 for the job, and cannot change it."""
        (other_tenant,) = (other for other in TENANTS if other != tenant)
        for planned in self._accepted_submissions(tenant):
            path = f"/jobs/{planned.ids[-1]}"
            function, method, path = self._world.random.choice(
                [("query", "GET", path), ("control", "POST", f"{path}/cancel"), ("control", "POST", f"{path}/retry")]
            )
            answer = ask(self._world, function, method, path, tenant=other_tenant)
            hidden = answer is None or answer.status in {NOT_FOUND, UNAVAILABLE}
            self._require(hidden, _ISOLATED, f"{other_tenant} was answered {answer}", _key(planned))

    def _list(self, tenant: str) -> None:
        """List page by page while the jobs change."""
        random = self._world.random
        began_ms = self._world.scheduler.now_ms
        filters: dict[str, str] = random.choice(
            [{}, {}, {"state": random.choice([*State])}, {"type": "sim.effect"}, {"tag": random.choice(TAGS)}]
        )
        # No job is older, and each day that is searched costs calls.
        since = {"since": (_EPOCH + timedelta(milliseconds=BEGINNING_MS - _ABOUT_NOW_MS)).isoformat()}
        seen: list[tuple[datetime, str]] = []
        cursor: str | None = None
        for _ in range(50):
            query = filters | since | {"limit": random.choice(["1", "2", "100"])}
            query |= {"cursor": cursor} if cursor else {}
            answer = ask(self._world, "query", "GET", "/jobs", tenant=tenant, query=query)
            if answer is None or answer.status == UNAVAILABLE:
                self._world.scheduler.sleep(random.randint(*_PAUSE_MS))
                continue
            self._require(answer.status == OK, "tenants find their jobs", f"{answer}", f"{tenant}#")
            for job in answer.body["jobs"]:
                self._listed(tenant, job, filters)
                seen.append((datetime.fromisoformat(job["created_at"]), job["id"]))
            if not (cursor := answer.body["cursor"]):
                break
            if self._world.faults.occurs(Fault.CURSOR_REUSED):
                self._reuse_cursor(tenant, filters | since | {"cursor": cursor})
        else:
            return
        self._require(seen == sorted(set(seen), reverse=True), "listings are in order", f"{seen}", f"{tenant}#")
        if filters.keys() <= {"tag"}:
            self._require_complete(tenant, filters.get("tag"), {job_id for _, job_id in seen}, began_ms)

    # Checks of the responses.

    def _answered(self, planned: PlannedSubmission, send: Callable[[str], Answer | None], verb: str) -> Answer | None:
        world, key = self._world, _key(planned)
        before, asked_ms = world.jobs.items.get((key,)), world.scheduler.now_ms
        answer = send(f"/jobs/{planned.ids[-1]}" + (f"/{verb}" if verb else ""))
        if answer is None or answer.status == UNAVAILABLE:
            return None
        if answer.status == NOT_FOUND:
            after, soon_ms = world.jobs.items.get((key,)), world.scheduler.now_ms + _ABOUT_NOW_MS
            gone = before is None or after is None or has_expired(before, soon_ms) or has_expired(after, soon_ms)
            self._require(gone, "tenants find their jobs", "the response is 404 for a live job", key)
        elif answer.status == OK:
            self._shown(planned, answer.body, verb)
            since = [change.after for change in world.trace.changes if change.key == key and change.at_ms >= asked_ms]
            self._require(shows_one_of(answer.body, [before, *since]), _AS_IT_WAS, f"{answer.body}", key)
        else:
            self._require(answer.status == CONFLICT and verb != "", "tenants find their jobs", f"{answer}", key)
            since = [change.after for change in world.trace.changes if change.key == key and change.at_ms >= asked_ms]
            states = {state_of(item) for item in (before, *since)}
            refused = bool({State.SUCCEEDED, State.EXPIRED} & states) if verb == "cancel" else states != {State.DEAD}
            known = refused or bool(world.rollout.planned)
            self._require(known, "a refusal over HTTP has its reason", f"{verb} of a job that was {states}", key)
        return answer

    def _shown(self, planned: PlannedSubmission, job: Any, verb: str) -> None:
        key, state = _key(planned), State(job["state"])
        self._require(job["id"] == planned.ids[-1], _ISOLATED, f"the response shows {job['id']}", key)
        # An earlier submission may have made a unique job.
        payload, submission = job["payload"], planned.submission
        submitted = json.loads(json.dumps(dict(submission.payload)))
        known = [submitted, *([migrated(submitted)] if submission.type == MIGRATED_TYPE else [])]
        known += [edited(submitted)] if submission.type in EDITABLE else []
        same = payload in known or (payload is None and state.terminal)
        same = same and (submission.type == "sim.unique" or job["tags"] == sorted(submission.tags))
        self._require(same, "responses show the submitted job", f"a {state} job, {str(payload)[:99]}", key)
        ending = state is State.CANCELLED or job["cancel_requested_at"] is not None
        self._require(verb != "cancel" or ending, "a job cancelled over HTTP ends", f"it is {state}", key)
        # The job may have run again before the response arrived.
        self._require(
            verb != "retry" or bool(job["redrives"]), "a job retried over HTTP is redriven", f"it is {state}", key
        )

    def _listed(self, tenant: str, job: Any, filters: dict[str, str]) -> None:
        key = f"{tenant}#{job['id']}"
        self._require(key in self._known, _ISOLATED, "a listing shows a job that this tenant never had", key)
        versions = (change.after for change in self._world.trace.changes if change.key == key)
        self._require(shows_one_of(job, versions), _AS_IT_WAS, f"{job}", key)
        fits = all(value in job["tags"] if name == "tag" else job[name] == value for name, value in filters.items())
        shown = f"{filters}: {job['type']}, {job['state']}, {job['tags']}"
        self._require(fits, "listings match their filters", shown, key)

    def _require_complete(self, tenant: str, tag: str | None, seen: set[str], began_ms: int) -> None:
        """Every job with the tag that existed before the first page and after the last must be listed."""
        if self._world.faults.counted[Fault.CLOCK_FAR_OFF] or self._world.rollout.planned:
            return
        lag_ms = LONGEST_INDEX_LAG_MS if self._world.faults.counted[Fault.INDEX_LAG] else _SHORT_LAG_MS
        # A submitter may have been delayed between dating and writing the job.
        written_ms = {change.key: change.at_ms for change in self._world.trace.changes if change.begins}
        for (key,), item in self._world.jobs.items.items():
            if "state" in item and tenant_of(key) == tenant and tag in {None, *tags_of(item)}:
                since_ms = max(number_of(item, "created_at"), written_ms[key])
                young = since_ms > began_ms - lag_ms - LARGEST_SKEW_MS
                shown = key.rpartition("#")[2] in seen
                gone = has_expired(item, self._world.scheduler.now_ms + _ABOUT_NOW_MS)
                self._require(shown or young or gone, "listings are complete", "the listing omits it", key)

    def _reuse_cursor(self, tenant: str, query: dict[str, str]) -> None:
        """Another tenant, or another filter, must not use the cursor."""
        (other_tenant,) = (other for other in TENANTS if other != tenant)
        for whose, filtered in ((other_tenant, query), (tenant, query | {"type": "sim.effect", "state": State.DEAD})):
            answer = ask(self._world, "query", "GET", "/jobs", tenant=whose, query=filtered)
            refused = answer is None or answer.status in {UNPROCESSABLE, UNAVAILABLE}
            self._require(
                refused, "a cursor works for one tenant and one query", f"{whose} was answered {answer}", f"{tenant}#"
            )

    def _accepted_submissions(self, tenant: str) -> list[PlannedSubmission]:
        """Up to two accepted submissions of this tenant."""
        accepted = [planned for planned in self._world.submissions if planned.tenant == tenant and planned.ids]
        return self._world.random.sample(accepted, min(len(accepted), 2))

    def _require(self, holds: bool, check: str, what: str, about: str) -> None:
        require_in_task(self._world.scheduler, holds, check, what, about)


def _key(planned: PlannedSubmission) -> str:
    return f"{planned.tenant}#{planned.ids[-1]}"
