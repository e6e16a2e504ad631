"""What execution environments accept of a tenant with a quota, when each counts by itself."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW, TENANT, a_job
from tests.support.configurations import configured, overridden
from tidemill.application.admission.quota_admission import QuotaCounter, refuse_over_quota
from tidemill.domain.admission.quotas import Period, Quota
from tidemill.domain.errors import QuotaExceededError, StoreUnavailableError
from tidemill.domain.operations.setting import Setting
from tidemill.names import FLOW_TYPE

MINUTE = timedelta(minutes=1)
QUOTA = Quota(count=100, period=MINUTE)
BEGINS = QUOTA.period_of(NOW).begins


class Counts:
    """`SubmissionCounts` in memory."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, Period]] = Counter()
        self.writes = 0
        self.down = False

    def add(self, tenant: str, period: Period, count: int) -> int:
        self.writes += 1
        if self.down:
            raise StoreUnavailableError("down")
        self.counts[tenant, period] += count
        return self.counts[tenant, period]


def accepted(counter: QuotaCounter, *, tenant: str = TENANT, now: datetime = BEGINS, quota: Quota = QUOTA) -> bool:
    try:
        counter.count(tenant, quota, now=now)
    except QuotaExceededError:
        return False
    return True


def test_one_environment_accepts_exactly_the_quota_with_a_write_for_each_share() -> None:
    counts = Counts()
    counter = QuotaCounter(counts)

    assert sum(accepted(counter) for _ in range(500)) == QUOTA.count
    assert counts.writes == QUOTA.count / QUOTA.share == 20


@given(order=st.lists(st.integers(0, 4), max_size=400))
def test_several_environments_accept_at_most_one_share_more_each(order: list[int]) -> None:
    counts = Counts()
    counters = [QuotaCounter(counts) for _ in range(5)]

    made = sum(accepted(counters[which]) for which in order)

    assert min(len(order), QUOTA.count) <= made <= QUOTA.count + len(counters) * QUOTA.share


def test_a_quota_begins_anew_with_each_period_and_counts_each_tenant_alone() -> None:
    counter = QuotaCounter(Counts())
    one = Quota(count=1, period=MINUTE)

    assert accepted(counter, quota=one)
    assert not accepted(counter, quota=one)
    assert accepted(counter, quota=one, tenant="another")
    assert accepted(counter, quota=one, now=BEGINS + MINUTE)


def test_a_quota_of_none_refuses_all() -> None:
    assert not accepted(QuotaCounter(Counts()), quota=Quota(count=0, period=MINUTE))


@pytest.mark.parametrize(("into", "seconds"), [(0, 60), (59.5, 1)])
def test_a_refusal_says_when_the_period_ends(into: float, seconds: float) -> None:
    with pytest.raises(QuotaExceededError) as refused:
        QuotaCounter(Counts()).count(TENANT, Quota(count=0, period=MINUTE), now=BEGINS + timedelta(seconds=into))

    assert refused.value.retry_after == timedelta(seconds=seconds)
    assert str(refused.value) == "the quota of 0 jobs in 60 s is used up; submit the job again later"


def test_while_the_store_does_not_respond_each_environment_goes_on_counting() -> None:
    counts = Counts()
    counts.down = True
    counter = QuotaCounter(counts)

    assert sum(accepted(counter) for _ in range(500)) == QUOTA.count


def test_a_count_that_failed_is_not_tried_again_for_each_job() -> None:
    counts = Counts()
    counts.down = True
    counter = QuotaCounter(counts)
    quota = Quota(count=10, period=MINUTE)

    assert all(accepted(counter, quota=quota) for _ in range(5))
    assert counts.writes == 1
    counts.down = False
    assert accepted(counter, quota=quota, now=BEGINS + timedelta(seconds=5))
    assert counts.counts[TENANT, quota.period_of(BEGINS)] == 5  # all but the one whose write failed


def test_the_periods_that_have_ended_are_forgotten() -> None:
    counter = QuotaCounter(Counts())
    for number in range(1_500):
        accepted(counter, tenant=f"t{number}", now=BEGINS + number * MINUTE)

    assert len(counter._known) <= 1_001


@pytest.mark.parametrize(("after", "kept"), [(MINUTE - timedelta(microseconds=1), 1_001), (MINUTE, 1)])
def test_a_period_is_forgotten_from_its_end_on(after: timedelta, kept: int) -> None:
    counter = QuotaCounter(Counts())
    for number in range(1_000):
        accepted(counter, tenant=f"t{number}")

    # In another period of its own, so that the time alone decides.
    accepted(counter, tenant="last", now=BEGINS + after, quota=Quota(count=1, period=7 * MINUTE))

    assert len(counter._known) == kept


def test_the_threads_of_an_environment_count_one_after_another() -> None:
    class Slow(Counts):
        at_work, together = 0, 0

        def add(self, tenant: str, period: Period, count: int) -> int:
            self.at_work += 1
            self.together = max(self.together, self.at_work)
            time.sleep(0.02)
            self.at_work -= 1
            return super().add(tenant, period, count)

    counts = Slow()
    counter = QuotaCounter(counts)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda number: accepted(counter, tenant=f"t{number}", quota=Quota(count=9, period=MINUTE)), range(4)
            )
        )

    assert (counts.writes, counts.together) == (4, 1)


def test_a_tenant_without_a_quota_costs_nothing() -> None:
    counts = Counts()
    configuration: Any = configured(overridden("test.job.max_attempts", 2))
    admit = refuse_over_quota(lambda: configuration, QuotaCounter(counts), lambda: NOW)

    for _ in range(100):
        admit(a_job())

    assert counts.writes == 0


def test_a_flow_counts_as_many_jobs_as_it_has_nodes() -> None:
    counts = Counts()
    setting = Setting(name="quotas.default", value={"count": 100, "period_seconds": 60}, at=NOW, by="ada", reason="")
    configuration: Any = configured(setting)
    admit = refuse_over_quota(lambda: configuration, QuotaCounter(counts), lambda: NOW)
    flow = a_job(type=FLOW_TYPE, payload=json.dumps({"nodes": [{"name": str(each)} for each in range(90)]}))

    admit(flow)
    assert counts.counts.total() == 90
    admit(flow)  # it may exceed what is left, so that a flow above the whole quota can start
    with pytest.raises(QuotaExceededError):
        admit(flow)
    with pytest.raises(QuotaExceededError):
        admit(a_job())
