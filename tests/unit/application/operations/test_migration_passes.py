"""How often a migration comes back to the jobs that it has left, and after which pauses."""

import dataclasses
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.builders import a_run
from tidemill import Continue, composition
from tidemill.application.operations.migration import Progress
from tidemill.domain.records import replace
from tidemill.migration.job import MigrationRequest, migrate
from tidemill.names import MIGRATION_TENANT


@pytest.mark.parametrize(
    ("number", "left", "dry_run", "minutes"),
    [
        (1, 1, False, 1),
        (2, 1, False, 2),
        (6, 1, False, 32),
        (7, 1, False, 60),
        (9, 1, False, 60),
        (10, 1, False, None),
        (1, 0, False, None),
        (1, 1, True, None),
    ],
)
def test_jobs_that_were_left_get_ten_passes_with_pauses_of_up_to_an_hour(
    number: int, left: int, dry_run: bool, minutes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_migration: Any, _change: Any, progress: Progress, **_: Any) -> Progress:
        return replace(progress, left=left, complete=True)

    monkeypatch.setattr(composition.FunctionParts, "migrator", lambda _, **__: SimpleNamespace(run=run))
    request = MigrationRequest(type="mail", function="json:loads", rate=1, dry_run=dry_run)

    ended = migrate(request, dataclasses.replace(a_run(), tenant=MIGRATION_TENANT, resumed_from={"number": number}))

    progress = replace(Progress(number=number), left=left, complete=True).as_json()
    assert ended == (Continue(progress, after=timedelta(minutes=minutes)) if minutes else progress)
