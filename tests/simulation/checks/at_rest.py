"""Checks at the end of a seed: compares what callers and handlers recorded with the documents."""

import json
from collections import Counter, defaultdict
from typing import Final

from tests.simulation.checks.document_changes import DocumentChangeChecks
from tests.simulation.checks.joint_calls import BATCHED, SUM
from tests.simulation.checks.owed_items import owed_advance, owed_dispatch
from tests.simulation.checks.violation import (
    Item,
    group_of,
    has_expired,
    number_of,
    require,
    state_of,
    tenant_of,
    text_of,
    waits_alone,
)
from tests.simulation.jobs.handler_runs import HandlerRun
from tests.simulation.jobs.odd_values import ODD_VALUES
from tests.simulation.world.faults import LOSSES, Fault
from tests.simulation.world.world import World
from tidemill.application.attempt.attempt_report import Ending
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict
from tidemill.domain.job import NO_ATTEMPT_LEFT, DeathReason
from tidemill.domain.states import TERMINAL, State
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE, LARGEST_MAX_ATTEMPTS, OWED_PREFIX

#: Types whose success writes no effect.
_WITHOUT_EFFECT: Final = frozenset(
    {"sim.plain", "sim.grouped", "sim.permanent", "sim.give-up", "sim.unstorable", EVENT_TYPE, BATCH_TYPE, FLOW_TYPE}
)
#: Their results have the number of their follow-up jobs.
_CHAINING: Final = frozenset({"sim.chain", *BATCHED})
#: Error classes that handlers raise, and those that the engine records for faults.
_EXPLAINED: Final = frozenset(
    {
        *(
            "BrokenError",
            "PermanentJobError",
            "RetryAfter",
            "GiveUp",
            "MissingInput",
            "StepsChangedError",
            "BatchFailed",
            "BatchOutcomesError",
        ),
        *("Crashed", "DeadlinePassed", "JobTimeoutError", "LeaseLostError", "TooManyHops"),
        *("EffectRefusedError", "StoreUnavailableError", "TransactionConflictError", "UndoFailedError"),
        # Only where versions differ: see `VersionCompatibilityChecks`.
        *("InvalidPayloadError", "NewerSchemaError", "UnknownJobTypeError"),
        # The result repeats a large payload.
        "ResultError",
        # Errors of the service that a handler calls.
        *("DownstreamStatusError", "TimeoutError"),
        *filter(None, (value.error for value in ODD_VALUES.values())),
    }
)
#: Long enough for the stream to recover from any fault of a seed.
_GROUP_GOES_ON_WITHIN_MS: Final = 2 * 3_600_000
#: Endings that a worker reports for a run that it settled itself.
_SETTLED: Final = frozenset(Ending) - {Ending.FENCED, Ending.REFUSED, Ending.NOT_STARTED, Ending.UNAVAILABLE}
#: Publish has sent the message of a woken job by then, or it is owed work: its calls may take long.
_ON_ITS_WAY_MS: Final = 60_000


class AtRestChecks:
    """The checks at the end of one world."""

    def __init__(self, world: World, documents: DocumentChangeChecks) -> None:
        self._world = world
        self._documents = documents

    def at_end(self) -> None:
        for check in (
            self.every_job_ends_in_time,
            self.attempts_fail_for_known_reasons,
            self.no_accepted_job_is_lost,
            self.one_key_is_one_job,
            self.effects_are_exactly_once,
            self.follow_ups_come_with_the_success,
            self.attempts_within_policy,
            self.cancelled_jobs_do_not_begin,
            self.tenants_are_isolated,
            self.reports_match_documents,
            self.every_run_is_reported,
            self.leases_expire_only_after_faults,
            self.our_code_loses_no_message,
            self.every_group_goes_on,
            self.no_owed_work_remains,
            self.no_message_exhausts_its_receives,
            self.dead_jobs_have_dlq_messages,
        ):
            check()

    def every_job_ends_in_time(self) -> None:
        for key, item in self._jobs().items():
            ended = state_of(item) in TERMINAL
            require(ended, "every job ends in time", f"it is still {state_of(item)} at the end of the time bound", key)
            reached = text_of(item, "death") != DeathReason.UNDELIVERABLE
            reached = reached or bool(self._world.faults.counted[Fault.LANE_EMPTIED])
            require(reached, "every job reaches a worker", "it died undeliverable", key)

    def attempts_fail_for_known_reasons(self) -> None:
        """An error that neither a handler raised nor a fault explains is a bug of the engine."""
        for key, item in self._jobs().items():
            for error in item.get("errors", {"L": []})["L"]:
                name = error["M"]["error_class"]["S"]
                what = error["M"]["message"]["S"]
                # An operator allows fewer attempts than the job has failed.
                lowered = name == NO_ATTEMPT_LEFT and bool(self._world.overridden_attempts[text_of(item, "type")])
                require(lowered or name in _EXPLAINED, "attempts fail for known reasons", f"{name}: {what}", key)

    def no_accepted_job_is_lost(self) -> None:
        for planned in self._world.submissions:
            for job_id in planned.ids:
                key = f"{planned.tenant}#{job_id}"
                there = self._documents.inserted[key] > 0
                require(there, "no accepted job is lost", "no document was ever written", key)

    def one_key_is_one_job(self) -> None:
        ids: dict[tuple[str, str], set[str]] = defaultdict(set)
        for planned in self._world.submissions:
            if planned.submission.key:
                ids[planned.tenant, planned.submission.key].update(planned.ids)
        for (tenant, name), found in ids.items():
            require(len(found) <= 1, "one idempotency key is one job", f"{name} made {sorted(found)}", f"{tenant}#")

    def effects_are_exactly_once(self) -> None:
        found = self._world.effects.items.items()
        # `JointCallChecks` looks at the sums.
        effects = {key: int(item["count"]["N"]) for (key,), item in found if not key.startswith(SUM)}
        wins: Counter[str] = Counter()
        for change in self._world.trace.changes:
            before, after = change.before, change.after
            if after and "state" in after and state_of(after) is State.SUCCEEDED is not state_of(before):
                wins[change.key] += after["type"]["S"] not in _WITHOUT_EFFECT
        for key in sorted({*effects, *wins}):
            require(
                effects.get(key, 0) == wins[key] <= self._documents.inserted[key],
                "effects are exactly once",
                f"{effects.get(key, 0)} effects, {wins[key]} successes",
                key,
            )

    def follow_ups_come_with_the_success(self) -> None:
        for key, item in self._jobs().items():
            # If the key was used twice, follow-ups of the first job may still exist.
            first = self._documents.inserted[key] == 1
            if first and text_of(item, "type") in _CHAINING and state_of(item) is State.SUCCEEDED:
                planned = json.loads(text_of(item, "result"))["then"]
                there = self._documents.children[key]
                require(
                    there == planned,
                    "follow-ups commit with the success",
                    f"{there} of {planned} follow-up jobs exist",
                    key,
                )

    def attempts_within_policy(self) -> None:
        for run in self._runs():
            within = 1 <= run.attempt <= run.max_attempts
            require(
                within, "attempts stay within the policy", f"attempt {run.attempt} of {run.max_attempts} ran", run.key
            )

    def cancelled_jobs_do_not_begin(self) -> None:
        for run in self._runs():
            planned = run.asked_to_end and not self._clocks_far_off
            require(not planned, "a job with a cancel request does not begin", "it ran", run.key)

    def tenants_are_isolated(self) -> None:
        for run in self._runs():
            there = self._documents.inserted[run.key] > 0
            require(there, "tenants are isolated", "it ran for a tenant without this job", run.key)

    def reports_match_documents(self) -> None:
        """A run reported as settled is settled, and a run reported as fenced is not."""
        for at_ms, by, report in self._world.reports:
            job = report.job
            if job is None or job.lease.owner is None or self._documents.claimed_by.get(job.lease.owner) != by:
                continue
            key = f"{job.tenant}#{job.id}"
            settled = self._documents.settled.get(job.lease.owner)
            if report.ending in _SETTLED:
                require(
                    settled is not None,
                    "reports match the documents",
                    f"reported {report.ending}, but nothing was written",
                    key,
                )
            elif report.ending is Ending.FENCED and settled:
                # A document records only its last owner, so an earlier settle may look like a takeover.
                since = [ms for ms, other in self._documents.settled.values() if other == key and ms > settled[0]]
                # A thread that was frozen for a day may find that its document expired, and a new job with its id.
                forgotten = report.verdict is ClaimVerdict.GONE or self._documents.inserted[key] > 1
                require(
                    forgotten or any(ms <= at_ms for ms in since),
                    "reports match the documents",
                    "reported as fenced, but it was settled",
                    key,
                )

    def every_run_is_reported(self) -> None:
        """A worker that lives reports each run that it settled, also those of the next jobs of a group."""
        reported = {report.job.lease.owner for _, _, report in self._world.reports if report.job}
        for run in self._runs():
            if run.owner in self._documents.settled and self._documents.claimed_by[run.owner] == run.by:
                faulty = self._world.sdk.gave_up[run.by] or run.by in self._world.scheduler.interrupted
                there = run.owner in reported or bool(faulty) or self._clocks_far_off
                require(there, "every run is reported", f"{run.by} settled it, and reported nothing", run.key)

    def leases_expire_only_after_faults(self) -> None:
        """A worker that lives and gets responses never lets a lease expire."""
        faulty = self._world.sdk.gave_up
        # Another's transaction on the document may outlast all tries of a settle.
        outlasted = {
            report.job.lease.owner
            for _, _, report in self._world.reports
            if report.job and report.ending is Ending.UNAVAILABLE
            if self._world.faults.counted[Fault.TRANSACTION_UNDER_WAY]
        }
        for token, key in self._documents.lost.items():
            by = self._documents.claimed_by[token]
            # A worker whose claim got no response takes it back, which is one more call that may fail. It cannot take
            # back a claim that the network holds up.
            held_up = self._world.faults.counted[Fault.HELD_UP]
            most = 1 if token in self._world.begun or held_up else 2
            excused = self._clocks_far_off or faulty[by] >= most or by in self._world.scheduler.interrupted
            excused = excused or token in outlasted
            require(excused, "a lease expires only after a fault", f"{by} lived and let the lease expire", key)

    def our_code_loses_no_message(self) -> None:
        """Only a message that SQS, the stream or an operator lost may need a nudge.

        The DLQ message of an earlier job of the key, dead at the same generation, looks like one moved by SQS.
        """
        counted = self._world.faults.counted
        if any(counted[fault] for fault in LOSSES):
            return
        dead: set[tuple[str, int]] = set()
        #: Keys of the owed work at the time of a change.
        owed: set[str] = set()
        #: By key, when wake queued it: a scheduled job, or one whose wait for a signal was over.
        woken: dict[str, int] = {}
        # While no deployed wake can read a document, its message stays owed. Reconcile of a newer version nudges it.
        unread = {change.key for change in self._world.trace.changes} if self._world.rollout.planned else set()
        for change in self._world.trace.changes:
            if change.key.startswith(OWED_PREFIX):
                (owed.add if change.after else owed.discard)(change.key)
            if change.before and change.after and "state" in change.after:
                dispatch = (change.key, number_of(change.after, "generation"))
                if state_of(change.after) is State.DEAD:
                    dead.add(dispatch)
                # Only wake queues a job that waits for a signal and leaves its time as it is.
                wait_over = waits_alone(change.before) and change.after.get("due") == change.before["due"]
                if state_of(change.before) is State.SCHEDULED or wait_over:
                    woken[change.key] = change.at_ms
                nudged = number_of(change.after, "nudges") > number_of(change.before, "nudges")
                work_key = owed_dispatch(change.key)
                # Wake was hours late, so reconcile finds a job long past its time while its message is on the way.
                just_woken = change.at_ms - woken.get(change.key, -_ON_ITS_WAY_MS) < _ON_ITS_WAY_MS
                # A lost run whose message is owed is taken back by a nudge.
                excused = dispatch in dead or work_key in unread or work_key in owed or just_woken
                require(not nudged or excused, "our code loses no message", "it needed a nudge", change.key)

    def every_group_goes_on(self) -> None:
        """The next job of a group is queued soon after the one before has ended, without the daily reconcile.

        This includes outages of DynamoDB after which publish hands the group over to wake. If only a newer version can
        read the next job, an alarm calls an operator, and this check does not apply. While faults last, any number of
        tries may fail, so the time counts from the last try of the owed advance that failed, and from the last call of
        wake that died.
        """
        if any(self._world.faults.counted[fault] for fault in LOSSES):
            return
        ended_ms: dict[tuple[str, str], int] = {}
        waits_ms: dict[str, int] = {}
        owed_ms: dict[str, int] = {}
        for change in self._world.trace.changes:
            if change.after and change.key.startswith(OWED_PREFIX):
                owed_ms[change.key] = change.at_ms
            document = change.after or change.before or {}
            if not ("state" in document and group_of(document)):
                continue
            group = (tenant_of(change.key), text_of(document, "group"))
            if change.after is None:
                # A dead job that blocks its group ends for it when an operator deletes it.
                if state_of(document) is State.DEAD and "blocks" in document:
                    ended_ms[group] = change.at_ms
            elif state_of(change.after) in TERMINAL:
                ended_ms[group] = change.at_ms
            elif state_of(change.after) is State.WAITING:
                waits_ms[change.key] = change.at_ms
            elif state_of(change.before) is State.WAITING and group in ended_ms:
                tenant, name = group
                tried_ms = owed_ms.get(owed_advance(tenant, name), 0)
                late_ms = change.at_ms - max(ended_ms[group], waits_ms[change.key], tried_ms)
                soon = late_ms <= _GROUP_GOES_ON_WITHIN_MS or f"the group {name} of {tenant}" in self._world.unreadable
                died_ms = self._world.trace.last_death_ms("wake", change.at_ms)
                soon = soon or change.at_ms - died_ms <= _GROUP_GOES_ON_WITHIN_MS
                require(soon, "every group goes on", f"it was queued {late_ms // 1000} s late", change.key)

    def no_owed_work_remains(self) -> None:
        for (key,), item in self._world.jobs.items.items():
            owed = key.startswith(OWED_PREFIX)
            require(not owed, "owed work is done", f"{key} remains: {text_of(item, 'error')}", "*")

    def no_message_exhausts_its_receives(self) -> None:
        for queue in self._world.lanes.values():
            for message in queue.moved:
                # After a rollback, a message that only the newer version can read returns until SQS moves it.
                excused = message.receives_wasted or self._world.rollout.rolled_back
                # The number of receives provides for a worker that dies in each attempt. A fault before the claim uses
                # up a receive and no attempt, and so does an outage of the table.
                out = {receipt for receipt, at in message.deliveries.items() if self._world.sdk.was_out("dynamodb", at)}
                excused = excused or len(message.spoilt | out) > LARGEST_MAX_ATTEMPTS
                require(excused, "no message exhausts its receives", message.body, "*")

    def dead_jobs_have_dlq_messages(self) -> None:
        """Each dead job has a reason, and a DLQ message unless SQS or the stream lost it."""
        bodies = [message.body for queue in self._world.dead_letters.values() for message in queue.messages]
        counted = self._world.faults.counted
        lost = any(counted[fault] for fault in (*LOSSES, Fault.DUPLICATE))
        for key, item in self._jobs().items():
            if state_of(item) is State.DEAD and not has_expired(item, self._world.scheduler.now_ms):
                require("death" in item, "every dead job has a reason", "the document has no death reason", key)
                wanted = f'"id":"{key.rpartition("#")[2]}","generation":{number_of(item, "generation")},'
                sent = any(wanted in body and tenant_of(key) in body and '"letter"' in body for body in bodies)
                require(
                    sent or lost, "every dead job has a DLQ message", f"generation {number_of(item, 'generation')}", key
                )

    @property
    def _clocks_far_off(self) -> bool:
        """Whether clocks differ by more than a lease allows for. Then only the fence protects the job."""
        return bool(self._world.faults.counted[Fault.CLOCK_FAR_OFF])

    def _jobs(self) -> dict[str, Item]:
        return {key[0]: item for key, item in self._world.jobs.items.items() if "state" in item}

    def _runs(self) -> list[HandlerRun]:
        return self._world.runs
