"""`tidemill rollback` on the embedded AWS: two deployments, back to the first, and forward again."""

import json
import time
from collections.abc import Mapping

from rich.console import Console

from tests.e2e.conftest import Deployed
from tidemill.local import environment
from tidemill.local.cdk_deploy import deploy
from tidemill.local.lifecycle import App
from tidemill.local.lifecycle import deployed as deployed_app
from tidemill.names import LIVE_ALIAS, Env

SETTING = "log_sample_rate=0.25"


def test_a_rollback_runs_the_code_of_before_and_loses_no_job() -> None:
    """The second deployment changes a setting of every function."""
    with deployed_app() as app:
        before = _sample_rates(app)
        keys = environment.root_keys(app.folder.name)
        deploy(app.folder, app.endpoint, keys, Console(stderr=True), context=[SETTING])
        after = _sample_rates(app)
        assert set(before.values()) == {""}
        assert set(after.values()) == {"0.25"}
        deployed = Deployed(app)
        jobs = [deployed.accepted("demo.flaky", {"failures": number % 3}) for number in range(20)]

        began = time.monotonic()
        result = json.loads(app.tidemill("rollback", "--yes", "--json", "--reason", "a test").stdout)
        print(f"rollback of {len(result['moves'])} functions: {time.monotonic() - began:.1f} s")  # noqa: T201 - a figure

        assert {move["function"] for move in result["moves"]} == app.functions.keys()
        assert _sample_rates(app) == before
        jobs += [deployed.accepted("demo.flaky", {"failures": 1})]
        for job in jobs:
            deployed.until(job, state="succeeded")
        status = json.loads(app.tidemill("status", "--json").stdout)
        assert {each["function"] for each in status["rolled_back"]} == app.functions.keys()

        app.tidemill("rollback", "--forward", "--yes")
        assert _sample_rates(app) == after
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
