"""The types that only commands of operators submit: what a job of a caller does, which an earlier version accepted."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, a_run
from tidemill import PermanentJobError, composition
from tidemill.fan_out.replay_job import ReplayRequest, replay
from tidemill.migration.job import MigrationRequest, migrate

MIGRATION = MigrationRequest(type="mail", function="json:loads", rate=1)
REPLAY = ReplayRequest(consumer="mail.sends", event="order.placed", since=NOW - timedelta(days=1), until=NOW, rate=1)


@pytest.mark.parametrize(
    ("handler", "request_", "command"), [(migrate, MIGRATION, "migrate"), (replay, REPLAY, "replay")]
)
def test_a_job_of_a_caller_dies_and_does_nothing(
    handler: Callable[..., Any], request_: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(**_: Any) -> None:
        pytest.fail("it works on the jobs of others")

    monkeypatch.setattr(composition.FunctionParts, "migrator", nothing)
    monkeypatch.setattr(composition.FunctionParts, "replayer", nothing)

    with pytest.raises(PermanentJobError, match=f"only `tidemill {command}` may submit this type"):
        handler(request_, a_run())
