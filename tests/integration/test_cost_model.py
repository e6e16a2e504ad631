"""The cost model against real jobs: its table capacity, its log lines, and what an idle stage does."""

import json
import zlib
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from demo.figures import log_bytes
from tests.integration.test_canary import GatewayInProcess, Invocation, gateway
from tests.integration.test_reconcile import SCHEDULED, metrics
from tests.support.capacity_meter import CapacityMeter, metered
from tests.support.deployed_functions import Context, Mill, forget
from tidemill.cost import idle_month, measured
from tidemill.cost.job_usage import of_one_job, write_units
from tidemill.cost.profile import Profile
from tidemill.entrypoints import canary, reconcile, wake
from tidemill.names import WAKE_PART, WAKE_PARTS, Env, Lane
from tidemill.telemetry import outcome_log, run_lines

#: Fixtures of other files, which these tests share.
__all__ = ["gateway", "metrics"]

JOBS = 10


def capacity(mill: Mill, work: Callable[[], None]) -> CapacityMeter:
    mill.read_configuration()
    with metered(mill.table) as meter:
        work()
    return meter


def jobs(mill: Mill, number: int, **submission: Any) -> Callable[[], None]:
    def work() -> None:
        for _ in range(number):
            mill.accepted(**submission)
        mill.run()

    return work


def padded(size_bytes: int) -> dict[str, str]:
    """JSON of this length."""
    return {"padding": "x" * (size_bytes - len('{"padding":""}'))}


@pytest.mark.parametrize("size_bytes", [100, 300, 1_000, 5_000, 20_000])
def test_a_payload_takes_the_capacity_of_the_model(mill: Mill, size_bytes: int) -> None:
    """The model also has the deletion, which comes a month later."""
    profile = Profile(payload_bytes=size_bytes)
    deleted = write_units(size_bytes + measured.PAYLOAD_KEY_BYTES) if size_bytes > 400 else 0

    meter = capacity(mill, jobs(mill, JOBS, job_type="test.noop", payload=padded(size_bytes)))

    used = of_one_job(profile)
    assert (meter.write_units + meter.index_write_units) / JOBS == used.write_units - deleted
    assert meter.read_units / JOBS == used.read_units


def test_a_compressed_payload_takes_the_capacity_of_the_model(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.COMPRESS_PAYLOADS, "true")
    forget()
    payload = {"lines": [{"sku": f"{number * 7919 % 10**8:08d}", "quantity": number % 9} for number in range(400)]}
    text = json.dumps(payload, separators=(",", ":"))
    profile = Profile(payload_bytes=len(text), compression=len(text) / len(zlib.compress(text.encode())))
    deleted = write_units(profile.stored_bytes + measured.PAYLOAD_KEY_BYTES)

    meter = capacity(mill, jobs(mill, JOBS, job_type="test.noop", payload=payload))

    used = of_one_job(profile)
    assert profile.compression > 3
    assert (meter.write_units + meter.index_write_units) / JOBS == used.write_units - deleted
    assert meter.read_units / JOBS == used.read_units


@pytest.mark.parametrize("size_bytes", [100, 2_000, 10_000])
def test_a_result_takes_the_capacity_of_the_model(mill: Mill, size_bytes: int) -> None:
    mill.script.handler = lambda _payload, _run: padded(size_bytes)

    meter = capacity(mill, jobs(mill, JOBS))

    used = of_one_job(Profile(result_bytes=size_bytes))
    assert (meter.write_units + meter.index_write_units) / JOBS == used.write_units


@pytest.mark.parametrize("attempts", [2, 3])
def test_a_failed_run_takes_the_capacity_of_the_model(mill: Mill, attempts: int) -> None:
    def fail_first(_payload: Any, run: Any) -> None:
        if run.attempt < attempts:
            raise ValueError("x" * 100)

    mill.script.handler = fail_first

    meter = capacity(mill, jobs(mill, JOBS))

    used = of_one_job(Profile(attempts=attempts))
    assert (meter.write_units + meter.index_write_units) / JOBS == used.write_units


def test_a_job_of_a_busy_group_takes_the_capacity_of_the_model(mill: Mill) -> None:
    """The first job, which finds an idle group, costs less, and the last has none behind it."""
    number = 40

    meter = capacity(mill, jobs(mill, number, job_type="test.noop", group="orders"))

    used = of_one_job(Profile(group=True))
    assert (meter.write_units + meter.index_write_units) / number == pytest.approx(used.write_units, abs=0.5)
    assert meter.read_units / number == pytest.approx(used.read_units, abs=0.5)


def test_a_slot_of_a_limit_takes_the_capacity_of_the_model(mill: Mill) -> None:
    """The key is in use: the first run of a key makes its item."""
    jobs(mill, 1, job_type="test.limited")()

    meter = capacity(mill, jobs(mill, 1, job_type="test.limited"))

    used = of_one_job(Profile(limit=True))
    assert meter.write_units + meter.index_write_units == used.write_units
    assert meter.read_units == used.read_units


def test_a_first_message_at_once_takes_the_capacity_of_the_model(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish reads each job, begun or not."""
    monkeypatch.setenv(Env.FIRST_MESSAGE_LANES, Lane.DEFAULT)

    meter = capacity(mill, jobs(mill, JOBS, job_type="test.noop"))

    used = of_one_job(Profile(first_message=True))
    assert (meter.write_units + meter.index_write_units) / JOBS >= used.write_units
    assert meter.read_units / JOBS == used.read_units


def test_the_log_lines_have_about_the_bytes_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = cache(outcome_log.new_logger)
    for module in (outcome_log, run_lines, log_bytes):
        monkeypatch.setattr(module, "logger", logger)

    counted = log_bytes.measure()

    model = {
        "accepted": measured.ACCEPTED_LINE_BYTES,
        "dispatched": measured.DISPATCHED_LINE_BYTES,
        "claimed and succeeded": measured.RUN_LINES_BYTES,
        "a failed attempt, claimed and retrying": measured.FAILED_RUN_LINES_BYTES,
    }
    counted["claimed and succeeded"] = counted["claimed"] + counted["succeeded"]
    assert {name: counted[name] for name in model} == pytest.approx(model, rel=0.05)


def written_metrics(output: str) -> set[str]:
    """Names of the metrics in these lines."""
    directives = [json.loads(line).get("_aws", {}).get("CloudWatchMetrics", []) for line in output.splitlines()]
    return {metric["Name"] for found in directives for each in found for metric in each["Metrics"]}


def test_a_wake_of_an_idle_stage_reads_and_logs_as_the_model_says(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {WAKE_PART: "0", WAKE_PARTS: "1"}

    meter = capacity(mill, lambda: wake.handle(event, Context(timedelta(minutes=1))))

    output = capsys.readouterr().out
    assert meter.read_units == idle_month.WAKE_READ_UNITS
    assert meter.write_units == 0
    assert len(output.encode()) == pytest.approx(idle_month.WAKE_LOG_BYTES, rel=0.1)
    assert written_metrics(output) == set()


@pytest.mark.usefixtures(metrics.__name__)
def test_a_call_of_reconcile_on_an_idle_stage_costs_what_the_model_says(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    def call() -> None:
        reconcile.handle(SCHEDULED, Context(timedelta(minutes=15)))

    table_pass = capacity(mill, call)
    capsys.readouterr()
    continued = capacity(mill, call)

    output = capsys.readouterr().out
    assert table_pass.read_units == pytest.approx(idle_month.PASS_READ_UNITS, rel=0.1)
    assert table_pass.write_units == pytest.approx(idle_month.PASS_WRITE_UNITS, rel=0.1)
    assert continued.read_units == idle_month.RECONCILE_READ_UNITS
    assert len(output.encode()) == pytest.approx(idle_month.RECONCILE_LOG_BYTES, rel=0.1)
    assert written_metrics(output) == idle_month.RECONCILE_METRICS


def test_a_canary_costs_what_the_model_says(
    mill: Mill, gateway: GatewayInProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.deaf = {Lane.CRITICAL, Lane.BULK}

    def call() -> None:
        canary.handle({}, Invocation())
        mill.run()

    meter = capacity(mill, call)

    expected = of_one_job(idle_month.CANARY).write_units + idle_month.CANARY_EFFECT_WRITE_UNITS
    assert meter.write_units + meter.index_write_units == expected
    assert written_metrics(capsys.readouterr().out) == idle_month.CANARY_METRICS
