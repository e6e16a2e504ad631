"""Replay in memory: what becomes of each stored event, which job it makes, and where a run goes on."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job, a_job_type
from tidemill.application.attempt.handler_results import checkpoint_text
from tidemill.application.event_types import EventType
from tidemill.application.events.replay import Progress, Replay, Replayer, ReplayVerdict, delivery_id
from tidemill.application.features import submit_features
from tidemill.application.job_types import JobTypes
from tidemill.application.passes.job_search import FoundPage
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import UnreadableItem
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    JobFileError,
    PermanentJobError,
    StoreUnavailableError,
    WriteRefusedError,
)
from tidemill.domain.events.events import Consumption
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import Inline
from tidemill.names import EVENT_TYPE, Lane

WANTED = Replay(
    consumer="mail", event="placed", version=None, tenant=None, since=NOW - timedelta(days=1), until=NOW + SECOND
)
DATA = {"order": "a", "country": "DE"}


def parsed(data: Any) -> Any:
    if data.get("order") == "bad":
        raise InvalidPayloadError([Fault("/order", "bad")])
    return data


CONSUMER = replace(
    a_job_type(name="mail", parse=parsed),
    consumes=(Consumption(type="placed", version=1, filter={"country": ("DE",)}), Consumption(type="paid")),
    retention=timedelta(days=3),
    blocks=True,
)


def an_event(**changes: Any) -> Job:
    content = {"type": "placed", "version": 1, "data": DATA, "consumers": [{"type": "stock"}]}
    job = {name: changes.pop(name) for name in list(changes) if name not in content}
    return a_job(
        **{
            "id": "event",
            "type": EVENT_TYPE,
            "state": State.SUCCEEDED,
            "hops": 2,
            "payload": json.dumps(content | changes),
        }
        | job
    )


class Store:
    """`SubmitStore`. It finds `known`, or raises `error`."""

    def __init__(self, known: Job | None = None, error: Exception | None = None) -> None:
        self.known, self.error = known, error
        self.inserted: list[Job] = []
        self.asked: list[tuple[str, str]] = []

    def get(self, tenant: str, job_id: str) -> Job | None:
        self.asked.append((tenant, job_id))
        return self.known

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        del batch
        if self.error:
            raise self.error
        if self.known:
            raise WriteRefusedError("insert_if_absent", self.known)
        self.inserted.append(job)
        return job


class Events:
    """`StoredEvents` of these pages."""

    def __init__(self, *pages: FoundPage, ordered: bool = True) -> None:
        self._pages, self.ordered = pages, ordered
        self.asked: list[tuple[Replay, str | None, datetime]] = []

    def pages(
        self, wanted: Replay, *, after: str | None, now: datetime, time_left: Callable[[], timedelta]
    ) -> Iterator[FoundPage]:
        del time_left
        self.asked.append((wanted, after, now))
        yield from self._pages

    def cursor_after(self, event: Job) -> str:
        return f"after {event.id}"


class Paces(Pace):
    """Lets so many events through."""

    def __init__(self, most: int) -> None:
        super().__init__(1, clock=lambda: NOW, pause=lambda _seconds: None)
        self.left = most
        self.spent: list[tuple[float, timedelta]] = []

    def spend(self, units: float, *, within: timedelta) -> bool:
        self.spent.append((units, within))
        self.left -= 1
        return self.left >= 0


def seen_data(text: str) -> Any:
    data = json.loads(text)
    if "country" not in data:
        raise InvalidPayloadError([Fault("/country", "missing")])
    return {"country": (data["country"].upper(),)}


EVENT_TYPES = {
    ("placed", 1): EventType(
        name="placed", version=1, read=seen_data, schema=dict, written_schema=dict, names={}, file="f", line=1
    )
}


def run(
    *found: Any,
    wanted: Replay = WANTED,
    store: Store | None = None,
    events: Events | None = None,
    types: JobTypes | None = None,
    most: int = 99,
    progress: Progress = Progress(),  # noqa: B008 - it is frozen
    clock: Callable[[], datetime] = lambda: NOW,
    save: Callable[[Progress], None] = lambda _progress: None,
    paces: Paces | None = None,
) -> Progress:
    store = store or Store()
    types = types or JobTypes({"mail": CONSUMER}, events=EVENT_TYPES)
    submit = submit_features.submit(
        store=store, payloads=Inline(), job_types=types, clock=lambda: NOW, new_id=lambda: "new"
    )
    replayer = Replayer(
        events=events or Events(FoundPage(found=found, cursor=None)),
        store=store,
        payloads=Inline(),
        submit=submit,
        jobs=paces or Paces(most),
        clock=clock,
        new_token=lambda: "token",
    )
    return replayer.run(wanted, progress, time_left=lambda: timedelta(seconds=42), save=save)


UNNAMED, NAMED = WANTED, replace(WANTED, name="again")


@pytest.mark.parametrize(("wanted", "tag"), [(UNNAMED, "replay"), (NAMED, "replay:again")])
@pytest.mark.parametrize(("group", "job_group"), [(None, None), (f"{EVENT_TYPE}/ada", "mail/ada")])
def test_an_event_makes_one_job_of_the_consumer_in_the_bulk_lane(
    wanted: Replay, tag: str, group: str | None, job_group: str | None
) -> None:
    store, event = Store(), an_event(group=group)

    progress = run(event, wanted=wanted, store=store)

    assert progress == Progress(complete=True, counts={"replayed": 1})
    [job] = store.inserted
    assert (job.id, job.tenant, job.type, job.lane) == (
        delivery_id(event, "mail", wanted.name),
        TENANT,
        "mail",
        Lane.BULK,
    )
    assert (job.payload.text, job.group.key, job.group.blocks) == (
        json.dumps(DATA, separators=(",", ":")),
        job_group,
        group is not None,
    )
    assert (job.lifetime.retention, job.tags, job.parent, job.hops) == (timedelta(days=3), (tag,), "event", 3)
    assert (job.trace, job.lifetime.useful_until) == ("token", None)


@pytest.mark.parametrize(
    "other",
    [
        (an_event(id="other"), "mail", ""),
        (an_event(tenant="other"), "mail", ""),
        (an_event(created_at=NOW + SECOND), "mail", ""),
        (an_event(), "stock", ""),
        (an_event(), "mail", "again"),
    ],
)
def test_each_event_consumer_and_name_has_a_job_of_its_own(other: tuple[Job, str, str]) -> None:
    assert delivery_id(an_event(), "mail", "") != delivery_id(*other)
    assert delivery_id(an_event(), "mail", "") == delivery_id(an_event(trace="other"), "mail", "")


MISSED = replace(WANTED, missed=True)


@pytest.mark.parametrize(
    ("event", "wanted", "verdict"),
    [
        *[(an_event(state=state), WANTED, "unfinished") for state in State if state is not State.SUCCEEDED],
        (an_event(data={"order": "a", "country": "de"}), WANTED, "replayed"),
        (an_event(data={"order": "a", "country": "FR"}), WANTED, "filtered"),
        # The model of the event refuses it, so the filter sees the data alone.
        (an_event(data={"order": "a"}), WANTED, "filtered"),
        (an_event(version=2, data={"order": "a"}), WANTED, "filtered"),
        (an_event(version=2), replace(WANTED, version=2), "filtered"),
        (an_event(type="paid", version=7), replace(WANTED, event="paid", version=7), "replayed"),
        (an_event(consumers=[{"type": "stock"}, {"type": "mail"}]), MISSED, "reached"),
        (an_event(consumers=[{"type": "stock"}]), MISSED, "replayed"),
        (an_event(consumers=[]), MISSED, "replayed"),
        (an_event(consumers=[{"type": "mail"}]), WANTED, "replayed"),
        (an_event(consumers=[{"type": "mail"}], data={"country": "FR"}), MISSED, "filtered"),
    ],
)
def test_each_event_has_its_verdict(event: Job, wanted: Replay, verdict: str) -> None:
    store = Store()
    progress = run(event, wanted=wanted, store=store)
    assert progress == Progress(complete=True, counts={verdict: 1})
    assert len(store.inserted) == (verdict == "replayed")


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        (an_event(type="paid"), WANTED),
        (an_event(version=1), replace(WANTED, version=2)),
        (an_event(type="paid", version=2), replace(WANTED, version=2)),
    ],
)
def test_an_event_of_another_type_or_version_does_not_count(event: Job, wanted: Replay) -> None:
    assert run(event, wanted=wanted) == Progress(complete=True)


@pytest.mark.parametrize(("group", "verdict"), [("a", "unordered"), (None, "replayed")])
def test_a_scan_replays_no_event_of_a_group(group: str | None, verdict: str) -> None:
    events = Events(FoundPage(found=[an_event(group=group)], cursor=None), ordered=False)
    assert run(events=events).counts == {verdict: 1}


def test_faults_are_listed_with_their_reasons_the_first_five_and_shortened() -> None:
    bad = an_event(data={"order": "bad", "country": "DE"})
    broken = an_event(payload="{", id="x" * 300)
    item = UnreadableItem(key="key", error=ValueError("no"))

    progress = run(bad, broken, item, *[item] * 4)

    assert progress.counts == {"refused": 1, "unreadable": 6}
    assert progress.seen == 7
    refused, unreadable, *items = progress.failures
    assert refused == {"tenant": TENANT, "id": "event", "error": str(Fault("/order", "bad"))}
    assert unreadable["id"] == "x" * 200
    assert unreadable["error"].startswith("JSONDecodeError: ")
    assert items == [{"tenant": "", "id": "key", "error": "no"}] * 3
    assert Progress.of_json(json.loads(json.dumps(progress.as_json()))) == progress
    assert Progress.of_json({}) == Progress()


def test_the_progress_fits_into_a_checkpoint_in_any_script() -> None:
    progress = Progress(cursor="c" * 600)
    for number in range(5):
        error = "🚚" * 300
        progress = progress.after(ReplayVerdict.REFUSED, tenant="t" * 512, event=str(number), error=error)

    saved = checkpoint_text(progress.as_json())

    assert [failure["id"] for failure in json.loads(saved)["failures"]] == ["0", "1"]
    assert Progress.of_json(json.loads(saved)).counts == {ReplayVerdict.REFUSED: 5}


@pytest.mark.parametrize(("dry_run", "verdict"), [(True, "earlier"), (False, "earlier")])
@pytest.mark.parametrize("same", [True, False])
def test_a_job_that_an_earlier_run_made_counts_as_such(dry_run: bool, verdict: str, same: bool) -> None:
    event, first = an_event(), Store()
    run(event, store=first)
    known = first.inserted[0] if same else replace(first.inserted[0], body_hash="of a migrated payload")
    assert run(event, wanted=replace(WANTED, dry_run=dry_run), store=Store(known)).counts == {verdict: 1}


@pytest.mark.parametrize(
    ("known", "verdict"), [(None, "replayed"), (a_job(expires_at=NOW), "replayed"), (a_job(), "earlier")]
)
def test_a_dry_run_writes_nothing_and_says_what_a_run_would_do(known: Job | None, verdict: str) -> None:
    store = Store(known)
    assert run(an_event(), wanted=replace(WANTED, dry_run=True), store=store).counts == {verdict: 1}
    assert (store.inserted, store.asked) == ([], [(TENANT, delivery_id(an_event(), "mail", ""))])


def test_an_outage_ends_the_run_so_that_the_next_begins_with_the_same_event() -> None:
    with pytest.raises(StoreUnavailableError):
        run(an_event(), store=Store(error=StoreUnavailableError("down")))


BROKEN = JobFileError("jobs/mail.py")


@pytest.mark.parametrize(
    ("types", "wanted", "reason"),
    [
        (JobTypes({"mail": CONSUMER}, faults=[BROKEN]), WANTED, "a job file is broken, and may declare the consumer"),
        (JobTypes({}), WANTED, "no job type 'mail' that consumes 'placed'"),
        (JobTypes({"mail": CONSUMER}), replace(WANTED, event="sent"), "no job type 'mail' that consumes 'sent'"),
        (JobTypes({"mail": replace(CONSUMER, consumes=())}), WANTED, "no job type 'mail' that consumes 'placed'"),
    ],
)
def test_a_replay_to_a_consumer_that_this_code_lacks_fails_at_once(
    types: JobTypes, wanted: Replay, reason: str
) -> None:
    with pytest.raises(PermanentJobError, match=reason):
        run(an_event(), types=types, wanted=wanted)


def test_a_run_goes_on_behind_its_cursor_and_ends_with_the_last_page() -> None:
    events = Events(
        FoundPage(found=[an_event(id="one")], cursor="a"), FoundPage(found=[an_event(id="two")], cursor=None)
    )
    progress = run(events=events, progress=Progress(cursor="before", counts={"replayed": 3}))
    assert progress == Progress(complete=True, counts={"replayed": 5})
    assert events.asked == [(WANTED, "before", NOW)]

    events = Events(FoundPage(found=[an_event(id="one")], cursor="a"))
    assert run(events=events) == Progress(cursor="a", counts={"replayed": 1})
    assert run(events=Events(), progress=progress) == progress


def test_a_run_without_time_ends_behind_the_last_event_and_counts_nothing_twice() -> None:
    item = UnreadableItem(key="key", error=ValueError("no"))
    paces = Paces(1)

    progress = run(an_event(id="one"), item, an_event(id="two"), paces=paces)

    # The item comes again.
    assert progress == Progress(cursor="after one", counts={"replayed": 1})
    assert paces.spent == [(1, timedelta(seconds=42))] * 2


def test_the_progress_is_saved_every_five_seconds() -> None:
    times = iter([NOW + second * SECOND for second in (0, 0, 4, 5, 5, 9, 10, 10)])
    saved: list[Progress] = []

    run(*[an_event(id=f"e{number}") for number in range(4)], clock=lambda: next(times), save=saved.append)

    assert [progress.cursor for progress in saved] == ["after e1", "after e3"]
    assert [progress.seen for progress in saved] == [2, 4]


def test_the_verdicts_are_words_of_the_result_of_a_replay() -> None:
    assert Progress().after(ReplayVerdict.REPLAYED).as_json() == {
        "cursor": None,
        "complete": False,
        "counts": {"replayed": 1},
        "failures": [],
    }
