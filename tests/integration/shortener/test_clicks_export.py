"""`clicks.export`: one file with every click once, over several invocations and crashes."""

import csv
import io
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from functions.jobs import clicks_export as export_module
from shortener import composition as shortener
from shortener import multipart_upload
from shortener.click import Click
from shortener.click_table import RECORDS_KEPT
from shortener.click_writes import ClickWrites
from shortener.multipart_upload import MOST_PARTS, UploadState
from shortener.visitor import Visitor
from tests.integration.shortener.conftest import BUCKET, REMAINING, World, refusing, set_now
from tests.support.faulty_client import KilledError
from tidemill import composition
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.handler_results import LARGEST_CHECKPOINT_BYTES
from tidemill.aws import clients
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.states import State
from tidemill.dynamodb.attempt.effects import entries

NOON: Final = datetime(2045, 3, 4, 12, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
CLICKS: Final = 13
VISITOR: Final = Visitor(country="SE", browser="=cmd()", system="Linux", device="Other", bot=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make parts so small that a file has many."""
    monkeypatch.setattr(multipart_upload, "PART_BYTES", 500)
    monkeypatch.setattr("moto.s3.models.S3_UPLOAD_PART_MIN_SIZE", 500)


@pytest.fixture(autouse=True)
def clicked(world: World, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    set_now(monkeypatch, lambda: NOON)
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    for number in range(CLICKS):
        click(world, number, at=NOON - timedelta(minutes=number))


def click(world: World, number: int, *, at: datetime, code: str = "spring") -> None:
    visit = Click(code=code, visitor=f"hash {number % 3}", referrer="https://news.example/story")
    job_id = f"job-{number:02d}"
    writes = ClickWrites(shortener.clicks(), first_job_id=job_id, now=NOON).of(visit, VISITOR, job_id=job_id, at=at)
    world.dynamodb.transact_write_items(TransactItems=entries(writes))  # type: ignore[arg-type]  # plain mappings


class Interrupted:
    """An S3 client that dies at one of its calls, counted from 0, before it or after it."""

    def __init__(self, client: Any, *, at: int, after: bool) -> None:
        self._client = client
        self._left = at
        self._after = after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(**request: Any) -> Any:
            self._left -= 1
            if self._left == -1 and not self._after:
                raise KilledError
            answer = method(**request)
            if self._left == -1:
                raise KilledError
            return answer

        return call

    @property
    def dead(self) -> bool:
        return self._left < 0


def exported(world: World, job: Job, *, runs: int = 100) -> Job:
    """Run the job until it has succeeded, at most `runs` times."""
    for _ in range(runs):
        if world.job(job).state.terminal:
            break
        world.run(world.job(job))
    assert world.job(job).state is State.SUCCEEDED, world.job(job).errors
    return world.job(job)


def minutes(text: str) -> list[str]:
    """The times (HH:MM) of the clicks in a file of JSON lines, in order."""
    return [json.loads(line)["at"][11:16] for line in text.splitlines()]


ALL: Final = [f"{NOON - timedelta(minutes=number):%H:%M}" for number in reversed(range(CLICKS))]


def checked(job: Job) -> None:
    """Assert that the file has every click once, and that the result of the job names the file."""
    result = json.loads(job.result or "")
    data = clients.s3().get_object(Bucket=BUCKET, Key=result["key"])["Body"].read()
    assert minutes(data.decode()) == ALL
    assert result == {"bucket": BUCKET, "key": result["key"], "lines": CLICKS, "bytes": len(data)}


def left_behind(world: World) -> list[Any]:
    """Incomplete uploads, and files other than exports."""
    uploads: list[Any] = clients.s3().list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return uploads + [key for key in world.files() if not key.endswith((".csv", ".jsonl"))]


def test_the_file_has_the_clicks_of_a_link_in_order(world: World) -> None:
    job = exported(world, world.submit("clicks.export", code="spring", format="jsonl", page=2), runs=1)
    checked(job)
    assert (job.progress.done, job.progress.total) == (CLICKS, CLICKS)
    assert list(world.files()) == [f"exports/{job.id}.jsonl"]
    assert left_behind(world) == []


def test_a_small_file_needs_one_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart_upload, "PART_BYTES", 8 * 1024 * 1024)
    s3 = Interrupted(clients.s3(), at=1, after=False)
    monkeypatch.setattr(clients, "s3", lambda: s3)
    world.run(world.submit("clicks.export", code="spring", format="jsonl", page=2))
    assert json.loads(world.jobs()[0].result or "")["lines"] == CLICKS


def test_a_csv_file_has_a_header_and_escapes_formulas(world: World) -> None:
    job = exported(world, world.submit("clicks.export", code="spring", page=2))
    (text,) = (data.decode() for data in world.files().values())
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == CLICKS
    assert json.loads(job.result or "")["lines"] == CLICKS == len(text.splitlines()) - 1
    assert rows[-1] | {"visitor": ""} == {
        "at": "2045-03-04T12:00:00.000Z",
        "country": "SE",
        "browser": "'=cmd()",
        "system": "Linux",
        "device": "Other",
        "bot": "true",
        "referrer": "news.example",
        "visitor": "",
    }


def test_visitors_are_distinct_within_a_link_and_not_traceable_to_another_link(world: World) -> None:
    world.post_link({"url": "https://example.com/a", "code": "summer"})
    for number in range(3):
        click(world, number, at=NOON, code="summer")
    for code in ("spring", "summer"):
        exported(world, world.submit("clicks.export", code=code, format="jsonl", page=2))
    texts = [data.decode().splitlines() for data in world.files().values()]
    visitors = [{json.loads(line)["visitor"] for line in lines} for lines in texts]
    assert [len(seen) for seen in visitors] == [3, 3]
    assert visitors[0].isdisjoint(visitors[1])
    assert "hash" not in str(texts)


@pytest.mark.parametrize(("code", "user"), [("spring", "AROAOTHER"), ("autumn", "AROAOWNER")])
def test_only_the_owner_of_a_link_can_export_its_clicks(world: World, code: str, user: str) -> None:
    job = world.submit("clicks.export", user=user, code=code)
    assert world.run(job).ending is Ending.DEAD
    assert world.job(job).death is DeathReason.PERMANENT
    assert world.job(job).errors[0].message == f"no link of yours has the code {code}"
    assert world.files() == {}


def test_a_link_without_clicks_has_an_empty_file(world: World) -> None:
    world.post_link({"url": "https://example.com/a", "code": "summer"})
    exported(world, world.submit("clicks.export", code="summer", format="jsonl", page=2))
    assert list(world.files().values()) == [b""]


def test_clicks_after_the_submission_are_left_out(world: World) -> None:
    job = world.submit("clicks.export", code="spring", format="jsonl", page=2)
    click(world, 99, at=NOON + timedelta(milliseconds=1))
    checked(exported(world, job))


def test_clicks_whose_records_have_expired_are_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    late = NOON + RECORDS_KEPT - timedelta(minutes=9, seconds=30)
    set_now(monkeypatch, lambda: late)
    exported(world, world.submit("clicks.export", code="spring", format="jsonl", page=2))
    (data,) = world.files().values()
    assert minutes(data.decode()) == ALL[-10:]


def short_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave each run time for one page only."""
    monkeypatch.setattr(export_module, "LONGEST_STEP", HOUR)


def test_it_continues_over_many_invocations_and_reports_its_progress(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_of_time(monkeypatch)
    job = world.submit("clicks.export", code="spring", format="jsonl", page=2)
    shown = []
    while world.run(world.job(job)).ending is Ending.CONTINUED:
        shown.append((world.job(job).progress.done, world.job(job).progress.total))
    assert shown == [(min(2 * run, CLICKS), CLICKS) for run in range(1, 8)]
    checked(world.job(job))
    assert left_behind(world) == []


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("short", [False, True], ids=["one run", "a run a page"])
def test_killed_at_any_call_the_file_has_every_click_once(
    world: World, monkeypatch: pytest.MonkeyPatch, short: bool, after: bool
) -> None:
    if short:
        short_of_time(monkeypatch)
    kill_at = 0
    while killed(world, kill_at, monkeypatch, after=after):
        kill_at += 1
    assert kill_at > 5


def killed(world: World, kill_at: int, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> bool:
    """Kill the worker of an export at this call of S3, then finish the export. False if the export made fewer calls."""
    job = world.submit("clicks.export", code="spring", format="jsonl", page=CLICKS // 3)
    dying = Interrupted(clients.s3(), at=kill_at, after=after)
    with monkeypatch.context() as for_now:
        for_now.setattr(clients, "s3", lambda: dying)
        while not dying.dead and not world.job(job).state.terminal:
            attempt = world.attempt(world.job(job))
            assert attempt.claim(remaining=REMAINING)
            outcome = None
            with suppress(TidemillError):  # the engine turns the kill into this error
                outcome = attempt.run()
            if outcome and not dying.dead:
                attempt.finish(outcome)
    with monkeypatch.context() as for_now:
        set_now(for_now, lambda: NOON + HOUR)  # its lease has expired
        checked(exported(world, job))
    return dying.dead


def test_a_part_that_a_stale_run_overwrote_restarts_the_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_time(monkeypatch)
    job = world.submit("clicks.export", code="spring", format="jsonl", page=2)
    while not (state := UploadState.model_validate_json(world.job(job).progress.checkpoint or "{}")).parts:
        world.run(world.job(job))
    clients.s3().upload_part(
        Bucket=BUCKET, Key=f"exports/{job.id}.jsonl", UploadId=state.upload, PartNumber=1, Body=b"stale" * 200
    )
    job = exported(world, job)
    (data,) = world.files().values()
    assert minutes(data.decode()) == ALL
    assert json.loads(job.result or "")["lines"] == CLICKS


def test_an_aborted_upload_is_restarted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_time(monkeypatch)
    job = world.submit("clicks.export", code="spring", format="jsonl", page=2)
    while not UploadState.model_validate_json(world.job(job).progress.checkpoint or "{}").upload:
        world.run(world.job(job))
    with monkeypatch.context() as for_now:
        # moto does not report this error.
        for_now.setattr(clients.s3(), "upload_part", refusing("NoSuchUpload"))
        while world.job(job).progress.done != 0:
            assert world.run(world.job(job)).ending is Ending.CONTINUED
            if UploadState.model_validate_json(world.job(job).progress.checkpoint or "{}") == UploadState():
                break
    checked(exported(world, job))


@pytest.mark.parametrize("answer", ["NoSuchKey", "AccessDenied"])
def test_a_tail_that_is_gone_restarts_the_file(world: World, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """S3 gives the second answer for a missing file to a role that may not list the bucket, as every role here."""
    short_of_time(monkeypatch)
    job = world.submit("clicks.export", code="spring", format="jsonl", page=2)
    while not UploadState.model_validate_json(world.job(job).progress.checkpoint or "{}").tail:
        world.run(world.job(job))
    with monkeypatch.context() as for_now:
        for_now.setattr(clients.s3(), "get_object", refusing(answer))
        assert world.run(world.job(job)).ending is Ending.CONTINUED
    assert UploadState.model_validate_json(world.job(job).progress.checkpoint or "") == UploadState()
    checked(exported(world, job))


def test_an_export_that_is_cancelled_while_it_runs_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_of_time(monkeypatch)
    job = world.submit("clicks.export", code="spring", format="jsonl", page=2)
    for _ in range(5):
        world.run(world.job(job))
    assert clients.s3().list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    attempt = world.attempt(world.job(job))
    assert attempt.claim(remaining=REMAINING)
    composition.parts().store.cancel(world.job(job), now=NOON)
    with pytest.raises(Exception, match="the job was asked to end"):
        attempt.run()
    assert world.files() == {}
    assert left_behind(world) == []


def test_a_file_that_would_be_too_large_is_refused_and_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart_upload, "MOST_PARTS", 2)
    job = world.submit("clicks.export", code="spring", format="jsonl", page=2)
    assert world.run(job).ending is Ending.DEAD
    assert "the file exceeds the limit of 1000 bytes; it cannot be exported" in world.job(job).errors[0].message
    assert world.files() == {}
    assert left_behind(world) == []


def test_the_state_of_the_largest_file_fits_into_a_checkpoint() -> None:
    longest = UploadState(
        lines=10**9,
        bytes=10**12,
        after="click#2045-03-04T05:06:07.891+00:00#" + "x" * 36,
        upload="x" * 200,
        parts=[("x" * 32, "x" * 8)] * MOST_PARTS,
        tail="exports/" + "x" * 100,
        whole=True,
    )
    assert len(json.dumps(longest.model_dump(), separators=(",", ":"))) <= LARGEST_CHECKPOINT_BYTES
