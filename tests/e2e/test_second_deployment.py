"""A second deployment on the embedded AWS: a pause holds through it, and `tidemill rollback` undoes it."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from rich.console import Console

from tests.e2e.conftest import Deployed
from tests.e2e.pause_story import PauseStory, say
from tidemill.local import environment
from tidemill.local.cdk_deploy import deploy
from tidemill.local.lifecycle import App
from tidemill.local.lifecycle import deployed as deployed_app
from tidemill.names import LIVE_ALIAS, Env

#: The second deployment changes this setting of every function, so each gets a new version.
SETTING = "log_sample_rate=0.25"


@dataclass(frozen=True)
class Twice:
    """An app that was deployed twice, and a pause that began before the second deployment."""

    app: App
    story: PauseStory
    #: The beginning of the pause.
    paused_since: str
    #: The setting of each function after each deployment.
    before: Mapping[str, str]
    after: Mapping[str, str]


@pytest.fixture(scope="module")
def twice() -> Iterator[Twice]:
    with deployed_app() as app:
        story = PauseStory(Deployed(app))
        story.begin()
        since = story.pause()["since"]
        before = _sample_rates(app)
        say(f"$ cdk deploy --all --context {SETTING}")
        deploy(
            app.folder, app.endpoint, environment.root_keys(app.folder.name), Console(stderr=True), context=[SETTING]
        )
        yield Twice(app, story, since, before, _sample_rates(app))


def test_a_pause_holds_through_a_deployment_and_its_jobs_run_once_after_it(twice: Twice) -> None:
    """`-s` prints the commands and their output."""
    assert set(twice.before.values()) == {""}
    assert set(twice.after.values()) == {"0.25"}
    twice.story.still_holds(twice.paused_since)
    twice.story.end()


def test_a_rollback_runs_the_code_of_before_and_loses_no_job(twice: Twice) -> None:
    app, deployed = twice.app, Deployed(twice.app)
    jobs = [deployed.accepted("demo.flaky", {"failures": number % 3}) for number in range(20)]

    began = time.monotonic()
    result = json.loads(app.tidemill("rollback", "--yes", "--json", "--reason", "a test").stdout)
    print(f"rollback of {len(result['moves'])} functions: {time.monotonic() - began:.1f} s")  # noqa: T201 - a figure

    assert {move["function"] for move in result["moves"]} == app.functions.keys()
    assert _sample_rates(app) == twice.before
    jobs += [deployed.accepted("demo.flaky", {"failures": 1})]
    for job in jobs:
        deployed.until(job, state="succeeded")
    status = json.loads(app.tidemill("status", "--json").stdout)
    assert {each["function"] for each in status["rolled_back"]} == app.functions.keys()

    app.tidemill("rollback", "--forward", "--yes")
    assert _sample_rates(app) == twice.after
    deployed.until(deployed.accepted("demo.flaky", {"failures": 0}), state="succeeded")


def _sample_rates(app: App) -> Mapping[str, str]:
    """The setting that the live version of each function has."""
    functions = app.client("lambda")
    return {
        key: functions.get_function_configuration(FunctionName=name, Qualifier=LIVE_ALIAS)["Environment"][
            "Variables"
        ].get(Env.LOG_SAMPLE_RATE, "")
        for key, name in app.functions.items()
    }
