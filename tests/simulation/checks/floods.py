"""Checks of quotas and shedding: the bound of a quota, and which submissions are refused, at which time, and why.

The figures are those of the guides of quotas and strain, not those of the engine.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from tests.simulation.actors.api_gateway import ACCEPTED, OK, UNAVAILABLE
from tests.simulation.actors.flooding_tenants import DEFERRABLE, FLOODER, SHEDDABLE, Flood, Request
from tests.simulation.checks.governor import GovernorChecks
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import number_of, require, tenant_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.application.submission.job_ids import keyed_job_id

#: A change of a setting acts within this time.
_ACTS_WITHIN_MS: Final = 10_000
#: An environment counts one part of a quota, or one job, before it adds them.
_PARTS: Final = 20
#: The jobs of a batch begin to be written within this time. One count that fails may take it up: a cold start, and
#: three tries of the SDK of up to two seconds.
_BATCH_STARTS_WITHIN_MS: Final = 3_000
_ONE_COUNT_FAILS_WITHIN_MS: Final = 7_000
_TOO_MANY: Final = 429
_DEFERRED_MS: Final = (300_000, 900_000)
_QUOTA_ITEM: Final = "!quota#"
_CONFIGURATION: Final = "!config"
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Insert:
    """A job of the tenant. The time of its document is that of the clock of its process."""

    key: str
    type: str
    by: str
    created_ms: int
    #: By the same clock, when it was written.
    written_ms: int
    skew_ms: int
    #: When it may begin, by the same clock.
    due_ms: int


class FloodChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World, governor: GovernorChecks) -> None:
        self._world = world
        self._governor = governor
        self._inserts: list[_Insert] = []
        self._counted = 0
        self.flood = Flood()
        #: The settings by name, and since when the table has them. The last ones are present.
        self._settings: list[tuple[int, dict[str, Any]]] = [(0, {})]
        watch_items(world, self._changed)

    def at_end(self) -> None:
        """Raises `Violation`."""
        self._a_quota_counts_its_tenant_only()
        self._a_refused_submission_stores_nothing()
        self._only_sheddable_types_are_shed_and_only_under_strain()
        self._strain_sheds_and_defers()
        if self.flood.quota:
            self._no_tenant_exceeds_its_quota()
        if self._calm:
            self._no_submission_is_refused_too_early()

    def _changed(self, key: str, record: Record) -> None:
        after = record.after or {}
        if key == _CONFIGURATION:
            settings = json.loads(text_of(after, "document") or "{}").get("settings", {})
            self._settings.append((self._now_ms, {name: entry["value"] for name, entry in settings.items()}))
        elif key.startswith(_QUOTA_ITEM):
            own = key.endswith(f"#{FLOODER}")
            require(own, "a quota counts its tenant only", f"the table has {key}", "*")
            self._counted += max(number_of(after, "count") - number_of(record.before, "count"), 0)
        elif tenant_of(key) == FLOODER and "state" in after and record.before is None:
            task = self._world.scheduler.current or self._world.scheduler.acting_for
            skew_ms = task.process.skew_ms if task else 0
            by = task.process.name if task else ""
            created_ms = number_of(after, "created_at")
            self._inserts.append(
                _Insert(
                    key,
                    text_of(after, "type"),
                    by,
                    created_ms,
                    self._now_ms + skew_ms,
                    skew_ms,
                    number_of(after, "due"),
                )
            )

    def _a_quota_counts_its_tenant_only(self) -> None:
        tries = sum(len(request.submissions) for request in self.flood.requests)
        # A write whose answer was lost may be sent again after the write of another environment.
        fits = self._counted <= tries or not self._calm
        require(fits, "a quota counts each submission once", f"{self._counted} of {tries}", "*")

    def _a_refused_submission_stores_nothing(self) -> None:
        answers: dict[str, list[int]] = defaultdict(list)
        for request in self.flood.requests:
            for number, planned in enumerate(request.submissions):
                status = request.answers[number][0] if request.answers else 0
                answers[_key(planned.submission.key)].append(status)
        stored = {insert.key for insert in self._inserts}
        for key, statuses in answers.items():
            # A 503 may be that of a write which was applied, and the quota is asked before it.
            refused = set(statuses) <= {_TOO_MANY}
            require(not refused or key not in stored, "a refused submission stores nothing", f"{statuses}", key)

    def _only_sheddable_types_are_shed_and_only_under_strain(self) -> None:
        check = "only sheddable types are shed, and only under strain"
        for request in self.flood.requests:
            for planned, (_, code) in zip(request.submissions, request.answers, strict=bool(request.answers)):
                if code == "strained":
                    fits = planned.submission.type == SHEDDABLE
                    require(fits, check, f"a {planned.submission.type} was refused", _key(planned.submission.key))
                    ended_ms = request.ended_ms or self._now_ms
                    began_ms = request.began_ms - _ACTS_WITHIN_MS
                    levels = self.operator_levels(began_ms, ended_ms) | self._governor.levels(began_ms, ended_ms)
                    fits = max(levels) > 0 or not self._calm
                    require(fits, check, "no strain was declared", _key(planned.submission.key))

    def _strain_sheds_and_defers(self) -> None:
        for insert in self._inserts:
            # It was admitted between the two. A process that could not read has the last known level.
            from_ms, to_ms = insert.created_ms - insert.skew_ms - _ACTS_WITHIN_MS, insert.written_ms - insert.skew_ms
            operators = self.operator_levels(from_ms, to_ms)
            highest = max(operators | self._governor.levels(from_ms, to_ms))
            strained = min(operators) > 0 and not self._world.sdk.gave_up[insert.by]
            shed = insert.type == SHEDDABLE and strained
            require(not shed, "strain sheds", "a sheddable job was accepted", insert.key)
            later_ms = insert.due_ms - insert.created_ms
            if insert.type == DEFERRABLE and (later_ms or strained):
                what = f"a deferrable job begins {later_ms} ms later at level {min(operators)} to {highest}"
                fits = _DEFERRED_MS[0] <= later_ms <= _DEFERRED_MS[1] and (highest > 0 or not self._calm)
                require(fits, "strain defers", what, insert.key)
            elif later_ms:
                require(False, "only deferrable types are deferred", f"{later_ms} ms", insert.key)

    def _no_tenant_exceeds_its_quota(self) -> None:
        quota = self.flood.quota
        if quota is None:
            return
        period_ms = quota.period // timedelta(milliseconds=1)
        share = max(quota.count // _PARTS, 1)
        set_ms = next((at_ms for at_ms, settings in self._settings if _has_quota(settings)), self._now_ms)
        accepted: dict[int, Counter[str]] = defaultdict(Counter)
        for insert in self._inserts:
            known = insert.created_ms - insert.skew_ms >= set_ms + _ACTS_WITHIN_MS
            # It was counted between the two.
            period = insert.created_ms // period_ms
            if known and insert.written_ms // period_ms == period:
                accepted[period][insert.by] += 1
        check = "no tenant exceeds its quota"
        for counts in accepted.values():
            sure = {by: count for by, count in counts.items() if not self._world.sdk.gave_up[by]}
            # None accepts more if its quota is 0.
            bound = quota.count + len(sure) * (share if quota.count else 0)
            require(sum(sure.values()) <= bound, check, f"{dict(counts)}, and the bound is {bound}", "*")
            if self._calm:
                # Only the shared count did not respond, so each environment has counted by itself.
                fits = max(counts.values()) <= quota.count
                require(fits, check, f"{dict(counts)} by environments that count to {quota.count}", "*")

    def _no_submission_is_refused_too_early(self) -> None:
        check = "no submission is refused below the quota"
        quota = self.flood.quota
        for request in self.flood.requests:
            for planned, (status, code) in zip(request.submissions, request.answers, strict=bool(request.answers)):
                key = _key(planned.submission.key)
                if status == _TOO_MANY:
                    fits = quota is not None and self._tried(request) > quota.count
                    require(fits, check, "its tenant has not used up its quota", key)
                else:
                    fits = status in {OK, ACCEPTED} or (status == UNAVAILABLE and code == "strained")
                    took_ms = (request.ended_ms or self._now_ms) - request.began_ms
                    slow = _BATCH_STARTS_WITHIN_MS <= took_ms <= _ONE_COUNT_FAILS_WITHIN_MS
                    fits = fits or (status == UNAVAILABLE and len(request.submissions) > 1 and slow)
                    # A repeat may meet the transaction that settles its job.
                    written = [insert.written_ms for insert in self._inserts if insert.key == key]
                    fits = fits or (
                        status == UNAVAILABLE and min(written, default=self._now_ms) < request.began_ms + took_ms
                    )
                    require(fits, check, f"{status} {code}", key)

    def _tried(self, refused: Request) -> int:
        """Submissions that may have counted in the period of this one, itself included."""
        period_ms = (self.flood.quota.period if self.flood.quota else _SECOND) // timedelta(milliseconds=1)
        begins_ms = refused.began_ms // period_ms * period_ms
        ended_ms = refused.ended_ms or self._now_ms
        return sum(
            len(request.submissions)
            for request in self.flood.requests
            if request.began_ms <= ended_ms and (request.ended_ms or ended_ms) >= begins_ms
        )

    def operator_levels(self, from_ms: int, to_ms: int) -> set[int]:
        """Those that the table had within that time."""
        ends = [at_ms for at_ms, _ in self._settings[1:]] + [to_ms + 1]
        return {
            settings.get("strain.level", 0)
            for (begins_ms, settings), ends_ms in zip(self._settings, ends, strict=True)
            if begins_ms <= to_ms and ends_ms >= from_ms
        }

    @property
    def _calm(self) -> bool:
        """Whether only the item of the shared count may be throttled in this seed."""
        return not any(self._world.faults.rates.values())

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms


def _has_quota(settings: dict[str, Any]) -> bool:
    return f"quotas.{FLOODER}" in settings


def _key(submission_key: str | None) -> str:
    return f"{FLOODER}#{keyed_job_id(FLOODER, submission_key or '')}"
