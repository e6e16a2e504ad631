"""No address, user agent or URL of a visitor is written anywhere, at any moment of the life of a click."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.shortener.conftest import World, no_country_of, set_now
from tests.support.faulty_client import Fault
from tidemill.names import Lane
from tidemill.telemetry import Telemetry
from tidemill.telemetry.run_lines import RunLines

Captured = Callable[[], list[str]]

#: Each has a part that no table item, log line or file may contain, and that does not occur by chance.
ADDRESSES = {"83.149.217.216": "149.217.216", "2001:4860:4860:abcd:c0:ffee::1": "c0:ffee"}
AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:125.73167316.42484248) Gecko/20100101 Firefox/125.73167316"
    + "x" * 256
    + "c4n4ry"
)
REFERRER = "https://c4n4ry-user:c4n4ry-password@news.example/c4n4ry/path?c4n4ry=query#c4n4ry"
SECRETS = ("c4n4ry", "73167316", "42484248", AGENT, REFERRER, *ADDRESSES, *ADDRESSES.values())


@pytest.fixture
def written(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every request to DynamoDB. The images of a stream are the items that these requests write."""
    requests: list[str] = []
    make_call = world.dynamodb._make_api_call  # type: ignore[attr-defined]  # all calls pass through this method

    def recorded(operation: str, request: Any) -> Any:
        requests.append(json.dumps(request))
        return make_call(operation, request)

    monkeypatch.setattr(world.dynamodb, "_make_api_call", recorded)
    return requests


@pytest.fixture
def captured(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Captured:
    """All log lines and metrics, and the log records with their fields."""

    def captured() -> list[str]:
        output = capsys.readouterr()
        return [output.out, output.err, *(str(vars(record)) for record in caplog.records)]

    return captured


def run_all(world: World) -> None:
    """Run all jobs, and write the log lines of their worker."""
    log = RunLines(telemetry=Telemetry.here(), lane=Lane.BULK, request_id="request")
    for report in world.run_all():
        if report.job:
            log.claimed(report.job)
        log.ended(None, report)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_part_of_a_visitor_is_written_to_a_table_a_stream_a_log_or_a_file(
    world: World,
    written: list[str],
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    captured: Captured,
) -> None:
    def visit(code: str = "spring", **headers: str) -> int:
        return world.visit(code, x_forwarded_for=address, user_agent=AGENT, referer=REFERRER, **headers).status

    world.post_link({"url": "https://example.com/a", "code": "spring"})
    assert [visit(), visit(idempotency_key="k"), visit(idempotency_key="k"), visit("nowhere")] == [302, 302, 302, 404]
    world.client.faults = [Fault.NOT_SENT]
    assert visit() == 302
    with monkeypatch.context() as for_now:
        for_now.setattr("shortener.visitor.country_of", no_country_of)
        run_all(world)
    # Later than the submissions below, which the real clock dates.
    later = max(job.due for job in world.jobs() if job.due) + timedelta(minutes=10)
    set_now(monkeypatch, lambda: later)
    run_all(world)
    assert world.stats("spring").json()["clicks"] == 2
    world.submit("clicks.export", code="spring")
    world.submit("clicks.rollup")
    run_all(world)

    tables = [json.dumps(world.items(table)) for table in (world.jobs_table, world.links_table, world.clicks_table)]
    logs = captured()
    assert any("no country of" in log for log in logs)
    files = [data.decode() for data in world.files().values()]
    assert "news.example" in files[0]
    for text in (*tables, *written, *logs, *files):
        assert [secret for secret in SECRETS if secret in text] == []
