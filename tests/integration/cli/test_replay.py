"""`replay`: a job of ours gives stored events to one consumer, after a plan and a confirmation."""

import json
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest

from tests.integration.cli.conftest import pipeline, run, shortener
from tests.integration.cli.loopback import Loopback
from tests.support.builders import TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.documented_job_types import job_types_of
from tests.support.job_tables import client
from tidemill import Event, composition
from tidemill.application.events.events import publish
from tidemill.application.job_types import JobTypes
from tidemill.aws import clients
from tidemill.cli.installation import Installation
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import decode
from tidemill.fan_out.job import fan_out
from tidemill.fan_out.replay_job import replay
from tidemill.names import REPLAY_TYPE, Env, Lane

_CONSUMER: Final = "mail.confirm"


@pytest.fixture
def system(server: Loopback, mill: Mill, environment: pytest.MonkeyPatch) -> Any:
    """The system of the page.

    Two events have been published, and the worker of lane bulk runs whenever the command waits.
    """
    with job_types_of("events.md") as known:
        types = JobTypes(
            {one.name: one for one in (*map(known.get, known.names()), fan_out, replay)}, events=known.events
        )
        forget()
        environment.setattr(composition, "known_job_types", lambda: types)
        for order in "78":
            publish(
                Event(type="order.placed", data={"order": order}),
                composition.parts().submit,
                tenant=TENANT,
                trace=order,
            )
        mill.run()
        urls = {"queue": mill.queue, "dead_letters": mill.dead_letters}
        environment.setenv(Env.LANES, json.dumps({Lane.BULK: urls}))
        forget()
        server.stacks = [pipeline(mill.table.name, "{}"), shortener()]
        environment.setattr(clients, "sts", partial(client, "sts"))
        environment.setattr("tidemill.cli.operations.operator_job.sleep", lambda _seconds: mill.run())
        yield mill


def replayed(mill: Mill) -> list[Job]:
    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    return [job for item in items if "state" in item and "replay" in (job := decode(item)).tags]


def command(*arguments: str) -> tuple[str, ...]:
    return ("replay", _CONSUMER, "--event", "order.placed", "--tenant", TENANT, "--since", "1h", *arguments)


def printed(*arguments: str) -> str:
    """What the command prints, without the lines of the functions, which share its stdout here."""
    lines = run(*command(*arguments)).stdout.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith('{"level"'))


def test_each_event_is_replayed_once(system: Mill) -> None:
    assert printed("--yes") == "2 events replayed.\n"
    assert printed("--yes") == "0 events replayed, 2 replayed before.\n"

    system.run()
    assert [(job.type, job.state) for job in replayed(system)] == [(_CONSUMER, State.SUCCEEDED)] * 2


def test_the_plan_is_shown_before_the_confirmation(system: Mill, environment: pytest.MonkeyPatch) -> None:
    environment.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)

    declined = run(*command(), typed="n\n")

    assert "2 events to replay." in declined.stderr
    assert f"Replay 2 events to {_CONSUMER}?" in declined.stderr
    assert replayed(system) == []
    assert run("audit", "--json").stdout == "", "a plan changes nothing"

    run(*command(), typed="y\n")
    assert len(replayed(system)) == 2


def test_a_plan_without_events_asks_nothing(system: Mill, environment: pytest.MonkeyPatch) -> None:
    environment.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)

    result = run(*command("--version", "9"))

    assert "Nothing was changed." in result.stdout


def refuse(_payload: Any) -> Any:
    raise InvalidPayloadError([Fault("/payload/order", "is a number now")])


@pytest.mark.parametrize("as_json", [False, True])
def test_a_plan_whose_events_are_all_refused_names_them_and_fails(
    system: Mill, environment: pytest.MonkeyPatch, as_json: bool
) -> None:
    environment.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)
    known = composition.known_job_types()
    types = {name: known.get(name) for name in known.names()}
    stricter = JobTypes(types | {_CONSUMER: replace(types[_CONSUMER], parse=refuse)}, events=known.events)
    forget()
    environment.setattr(composition, "known_job_types", lambda: stricter)

    result = run(*command(*["--json"] * as_json))

    assert result.exit_code == 1
    *_, last = result.stdout.splitlines()
    if as_json:
        shown = json.loads(last)
        assert (shown["refused"], len(shown["failures"])) == (2, 2)
    else:
        assert last == "Nothing was changed."
        assert result.stdout.count("is a number now") == 2
    assert replayed(system) == []


def items(mill: Mill) -> list[Any]:
    return sorted(mill.table.client.scan(TableName=mill.table.name)["Items"], key=str)


@pytest.mark.parametrize("listed", [True, False])
def test_a_dry_run_writes_nothing(system: Mill, environment: pytest.MonkeyPatch, listed: bool) -> None:
    environment.setattr(Installation, "keeps_listing", listed)
    run(*command("--yes", "--again", "first"))
    before = items(system)

    assert printed("--dry-run") == "At most 2 events to replay.\n"
    assert printed("--dry-run", "--again", "first") == "At most 0 events to replay, 2 replayed before.\n"
    shown = json.loads(printed("--dry-run", "--missed", "--json"))
    assert (shown["complete"], shown["replayed"], shown["reached"]) == (True, 0, 2)
    assert items(system) == before, "neither a job nor an audit entry"


def test_a_dry_run_says_when_it_stops_counting(system: Mill, environment: pytest.MonkeyPatch) -> None:
    environment.setattr("tidemill.cli.events.replay.COUNTED_FOR", timedelta(0))

    result = run(*command("--dry-run"))

    assert result.stdout == "0 events to replay, so far.\n"
    assert "Stopped counting" in result.stderr
    assert f"by the filter and the payload model of {_CONSUMER}" in " ".join(result.stderr.split())


def test_a_replay_leaves_an_audit_entry(system: Mill) -> None:
    shown = json.loads(printed("--yes", "--reason", "the template was broken", "--json"))

    assert (shown["state"], shown["replayed"], shown["failures"]) == ("succeeded", 2, [])
    entry = json.loads(run("audit", "--json").stdout)
    assert (entry["command"], entry["reason"], entry["outcome"]) == ("replay", "the template was broken", "done")
    assert (entry["options"]["consumer"], entry["options"]["event"]) == (_CONSUMER, "order.placed")
    assert (entry["counts"]["replayed"], entry["counts"]["refused"]) == (2, 0)


def test_a_consumer_that_does_not_exist_is_named(system: Mill) -> None:
    result = run("replay", "no.such", "--event", "order.placed", "--since", "1h", "--yes")

    assert result.exit_code == 1
    assert "has no job type 'no.such' that consumes 'order.placed'" in " ".join(result.stderr.split())


@pytest.mark.usefixtures("system")
def test_ctrl_c_in_the_plan_says_that_only_the_count_continues(environment: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    environment.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)
    environment.setattr("tidemill.cli.operations.operator_job.sleep", interrupt)
    result = run(*command())
    assert result.exit_code == 130
    assert "The count of the events continues" in result.stderr
    assert "The replay continues" not in result.stderr


def test_ctrl_c_says_that_the_replay_continues(system: Mill, environment: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    environment.setattr("tidemill.cli.operations.operator_job.sleep", interrupt)
    result = run(*command("--yes"))

    assert result.exit_code == 130
    assert "The replay continues" in result.stderr
    system.run()
    assert len(replayed(system)) == 2


def test_only_operators_can_submit_a_replay(system: Mill) -> None:
    request = {"consumer": _CONSUMER, "event": "order.placed", "since": "2026-01-01T00:00:00Z", "rate": 1}

    answer = system.post({**request, "until": "2027-01-01T00:00:00Z"}, job_type=REPLAY_TYPE)

    assert answer.status == 422
    assert "operators run `tidemill replay` instead" in str(answer.body)
    assert replayed(system) == []


@pytest.mark.parametrize("times", [["--since", "1h", "--until", "2h"], ["--since", "2099-01-01T00:00:00Z"]])
def test_times_that_hold_no_event_are_wrong_usage(system: Mill, times: list[str]) -> None:
    before = items(system)

    result = run("replay", _CONSUMER, "--event", "order.placed", *times, "--yes")

    assert result.exit_code == 2
    assert "--since must be before --until, and in the past" in " ".join(result.stderr.split())
    assert items(system) == before


@pytest.mark.parametrize(
    "arguments", [["--since", "1h"], ["--event", "order.placed"], ["--event", "e", "--since", "1h", "--again", "A B"]]
)
def test_invalid_arguments_are_wrong_usage(system: Mill, arguments: list[str]) -> None:
    assert run("replay", _CONSUMER, *arguments, "--yes").exit_code == 2
    assert replayed(system) == []
