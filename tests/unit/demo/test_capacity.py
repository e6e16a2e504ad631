"""The figure of `make figures FIGURE=capacity`: what its model computes, what it prints and what it draws."""

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from demo.figures import capacity
from demo.figures.capacity import FAST, FOLDER, HEADER, PROD, SCENARIOS, Scenario, line, plot, rows
from demo.figures.capacity_model import Capacity, Environments, OnDemandTable, Played, capacity_of, play
from demo.figures.index_model import SPLIT_AFTER_SECONDS, IndexModel
from demo.figures.time_plot import Panel, svg
from tidemill.cost import measured
from tidemill.cost.aws_quotas import PARTITION_WRITE_UNITS, PEAK_SECONDS
from tidemill.cost.stage_limits import StageLimits
from tidemill.local.wait import WaitError

SCALE: Final = (Path(__file__).parents[3] / "docs/operations/scale.md").read_text()
#: Two batches of ten, each of a second: 20 jobs a second.
TWO: Final = Capacity(batch_seconds=1.0, begins_with=2, max_concurrency=2)


def endless() -> IndexModel:
    return IndexModel(shards=1, partitions=1, bound=math.inf)


def at_once(jobs: float, capacity_: Capacity, *, seconds: float = 60) -> Played:
    return play(capacity_, lambda now: 4 * jobs if now == 0 else 0.0, seconds=seconds, index=endless())


def test_a_backlog_drains_at_the_rate_of_its_workers() -> None:
    assert at_once(200, TWO).drained_at == pytest.approx(10, abs=1)


def test_a_mapping_begins_with_five_batches_and_grows_by_five_a_second_while_messages_wait() -> None:
    ramping = replace(TWO, begins_with=5, ramp_per_second=5.0, max_concurrency=20)

    concurrency = at_once(2_000, ramping).concurrency

    # The message arrives a step after its job, and a run starts a step later.
    assert concurrency[2] == 5
    assert concurrency[6] == pytest.approx(10)
    assert max(concurrency) == 20


def test_workers_leave_the_account_what_the_other_functions_use() -> None:
    narrow = replace(TWO, begins_with=50, max_concurrency=50, account_concurrency=30, submit_seconds=1.0)

    played = play(narrow, lambda _now: 10.0, seconds=60, index=endless())

    assert max(played.concurrency) <= 30


def test_a_slow_publisher_delays_the_messages_of_all_shards() -> None:
    """Four shards of 25 jobs a second each."""
    played = at_once(200, replace(TWO, begins_with=100, max_concurrency=100, shard_rate=25))

    assert played.sent[4] == pytest.approx(100, abs=1)
    assert played.drained_at == pytest.approx(2, abs=1)


def test_the_publisher_of_a_shard_sends_more_than_its_partition_can_ask_for() -> None:
    model = capacity_of(FAST.jobs, FAST.limits, api_burst=600)

    assert model.shard_rate > 10 * PARTITION_WRITE_UNITS
    # With one processor of its own, by the CPU time that the benchmark counts.
    assert 1000 / measured.PUBLISH_CPU_MS >= 1_000


def test_the_burst_of_the_api_is_taken_at_once_and_the_rest_at_its_rate() -> None:
    played = at_once(100, replace(TWO, api_rate=10.0, api_burst=50.0))

    assert 50 - 3 <= 100 - played.at_callers(0) <= 50 + 3
    assert played.at_callers(19) == pytest.approx(0, abs=3)


def test_a_table_takes_twice_its_peak_only_half_an_hour_later() -> None:
    table = OnDemandTable(4_000)
    for second in range(PEAK_SECONDS + 120):
        before = table.units_per_second
        table.use(4_000, second)
        assert before == 4_000 or second > PEAK_SECONDS
    assert table.units_per_second == pytest.approx(8_000)


def test_a_table_never_grows_beyond_its_quota() -> None:
    table = OnDemandTable(4_000)
    for second in range(PEAK_SECONDS + 120):
        table.use(30_000, second)
    assert table.units_per_second == 40_000


def test_lambda_creates_a_thousand_environments_at_once_and_a_hundred_a_second_then() -> None:
    environments = Environments()

    assert environments.need(3_000, 0) == 1_000
    assert environments.need(3_000, 1) == 1_100
    assert environments.need(500, 1) == 500
    assert environments.need(1_200, 0) == 1_200


def test_a_partition_takes_its_bound_of_all_its_keys_together() -> None:
    index = IndexModel(shards=4, partitions=1, bound=100)
    index.offer(400)

    assert index.accept(math.inf, 1) == 100
    assert index.waiting == 300


def test_a_hot_partition_with_several_keys_splits_and_one_with_a_single_key_does_not() -> None:
    index = IndexModel(shards=4, partitions=1, bound=100)
    for _ in range(round(3 * SPLIT_AFTER_SECONDS)):
        index.offer(1_000)
        index.accept(math.inf, 1)

    assert index.used_partitions == 4
    assert index.accept(math.inf, 1) == 400


def test_what_other_parts_refuse_heats_no_partition() -> None:
    index = IndexModel(shards=4, partitions=1, bound=100)
    for _ in range(round(2 * SPLIT_AFTER_SECONDS)):
        index.offer(1_000)
        index.accept(50, 1)

    assert index.used_partitions == 1


def test_no_job_is_lost_in_the_model() -> None:
    scenario = Scenario(name="short", offered=capacity.burst, minutes=5, settings={})
    played = capacity.played(scenario, PROD)

    for step in range(0, len(played.at), 100):
        amounts = [sum(played.offered[step]), sum(played.accepted[step]), played.sent[step], played.started[step]]
        assert all(after <= before + 1e-6 for before, after in pairwise(amounts))
        assert played.at_callers(step) + played.in_stage(step) + played.started[step] == pytest.approx(
            sum(played.offered[step])
        )


def test_a_job_that_has_not_started_has_no_wait() -> None:
    played = at_once(10_000, TWO)

    assert played.start_seconds(0) is None
    assert played.drained_at is None


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_the_page_shows_the_table_and_the_plot_of_the_command(scenario: Scenario) -> None:
    """After a change of `tidemill/cost`, run `make figures FIGURE=capacity`, and copy its table to the page."""
    found, runs = rows(scenario)

    shown = SCALE.split("```")
    assert any(HEADER in block and all(line(each) in block for each in found) for block in shown)
    assert (FOLDER / f"scale-{scenario.name}.svg").read_text() == plot(runs)


@pytest.mark.parametrize("rate", capacity.FIRST_RATES)
def test_the_page_says_how_much_of_a_new_load_is_accepted_at_first(rate: float) -> None:
    assert capacity.first_line(rate) in SCALE


def test_the_index_accepts_a_new_load_at_first_as_far_as_its_partitions_take_it() -> None:
    one, *_, last = capacity.accepted_at_first(16_000, PROD)

    # 4,000 of 16,000 at most, and less if a partition has no key.
    assert one <= last == pytest.approx(0.25)


def test_the_command_fails_when_the_settings_do_not_carry_the_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few = replace(FAST, limits=StageLimits(max_concurrency=20, warm_write_units=40_000))
    short = Scenario(name="short", offered=capacity.steady, minutes=3, settings={"few": few})
    monkeypatch.setattr(capacity, "SCENARIOS", (short,))
    monkeypatch.setattr(capacity, "FOLDER", tmp_path)

    with pytest.raises(WaitError, match="few do not carry the short"):
        capacity.main()


def test_the_plot_is_xml_with_a_curve_for_each_panel_and_name() -> None:
    curves = {"one": [(0.0, 0.0), (10.0, 5.0)], "two": [(0.0, 1.0), (10.0, 2.0)]}

    root = ET.fromstring(svg([Panel("first", curves), Panel("second", curves)]))

    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 4
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"first", "second", "one", "two", "minutes"} <= {*texts}
