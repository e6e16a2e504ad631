"""A test runs each block of Python in the README and the documents."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.documented_job_types import job_types_of
from tidemill import Adaptive
from tidemill.testing import State, run_job

ROOT = Path(__file__).parents[3]
#: The blocks of Python of each page, and the test that runs them all.
RUN_BY: Final[dict[str, tuple[int, str]]] = {
    "README.md": (1, "tests/unit/docs/test_readme.py"),
    "docs/guides/flows.md": (1, "tests/integration/test_flows.py"),
    "docs/guides/adaptive-limits.md": (2, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/batch-handlers.md": (2, "tests/unit/docs/test_batch_handlers_page.py"),
    "docs/guides/batches.md": (1, "tests/integration/test_batches.py"),
    "docs/guides/breakers.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/compensation.md": (1, "tests/integration/test_compensation.py"),
    "docs/guides/debounce.md": (2, "tests/integration/test_debounce.py"),
    "docs/guides/delays-and-schedules.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/event-sources.md": (4, "tests/infrastructure/test_event_sources.py"),
    "docs/guides/events.md": (1, "tests/integration/test_events.py"),
    "docs/guides/from-python.md": (6, "tests/unit/test_client.py"),
    "docs/guides/grouped-commit.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/limits.md": (2, "tests/unit/dynamodb/test_limits.py"),
    "docs/guides/long-jobs.md": (1, "tests/integration/test_long_jobs.py"),
    "docs/guides/outcomes.md": (1, "tests/integration/test_outcomes.py"),
    "docs/guides/signals.md": (1, "tests/integration/test_signals.py"),
    "docs/guides/steps.md": (2, "tests/integration/test_steps.py"),
    "docs/operations/runtime-configuration.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/reference/settings.md": (1, "tests/infrastructure/test_guides.py"),
    "docs/start/deploy.md": (1, "tests/infrastructure/test_guides.py"),
    "docs/start/install-the-engine.md": (1, "tests/infrastructure/test_guides.py"),
    "docs/start/test-a-job-type.md": (2, "tests/unit/test_client.py"),
    "docs/guides/strain.md": (3, "tests/unit/docs/test_code_blocks.py"),
}


def test_every_block_is_run_by_a_test() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    blocks = {page.relative_to(ROOT).as_posix(): len(re.findall("```python\n", page.read_text())) for page in pages}

    assert {page: number for page, number in blocks.items() if number} == {
        page: number for page, (number, _) in RUN_BY.items()
    }


@pytest.mark.parametrize(("page", "test"), [(page, test) for page, (_, test) in RUN_BY.items()])
def test_the_test_reads_the_page(page: str, test: str) -> None:
    assert Path(page).name in (ROOT / test).read_text()


def test_the_type_with_grouped_commit_of_the_guide_runs() -> None:
    with job_types_of("grouped-commit.md") as known:
        checksum: Any = known.get("text.checksum")

        assert checksum.grouped
        assert run_job(checksum, {"text": ""}).result.startswith("e3b0c44")


def test_the_type_with_a_breaker_of_the_guide_runs() -> None:
    with job_types_of("breakers.md") as known:
        charge: Any = known.get("order.charge")

        assert [policy.name for policy in charge.depends_on] == ["payments"]
        assert charge.classify(RuntimeError("maintenance")) == "transient"
        assert run_job(charge, {"order_id": "1"}).state is State.SUCCEEDED


def test_the_periodic_type_of_the_guide_runs() -> None:
    with job_types_of("delays-and-schedules.md") as known:
        nightly: Any = known.get("reports.nightly")

        assert nightly.schedule == "cron(0 3 * * ? *)"
        assert run_job(nightly, {}).state is State.SUCCEEDED


def test_the_adaptive_type_of_the_guide_runs() -> None:
    with job_types_of("adaptive-limits.md", file="charge.py") as known:
        charge: Any = known.get("payments.charge")

        assert charge.limit.adaptive == Adaptive(ceiling=50, target_seconds=0.5)
        assert run_job(charge, {"account": "a"}).state is State.SUCCEEDED


def test_the_types_of_the_guide_that_share_an_adaptive_limit_run() -> None:
    with job_types_of("adaptive-limits.md", file="invoices.py") as known:
        types: list[Any] = [known.get(name) for name in ("invoice.post", "invoice.void")]

        assert {each.shared_limit for each in types} == {"ledger"}
        assert {run_job(each, {"number": 1}).state for each in types} == {State.SUCCEEDED}


def test_the_type_with_a_flag_reads_it() -> None:
    with job_types_of("../operations/runtime-configuration.md") as known:
        welcome: Any = known.get("mail.welcome")

        assert run_job(welcome, {}).result == "old"
        assert run_job(welcome, {}, flags={"new_template": True}).result == "new"


def test_the_type_that_saves_work_under_strain_runs() -> None:
    with job_types_of("strain.md", file="page_preview.py") as known:
        preview: Any = known.get("page.preview")

        assert preview.importance == "sheddable"
        assert [run_job(preview, {"url": "/"}, strained=level).result for level in (0, 2)] == ["large", "small"]


def test_the_type_that_skips_work_under_strain_runs() -> None:
    with job_types_of("strain.md", file="visit_record.py") as known:
        record: Any = known.get("visit.record")

        ran = run_job(record, {"address": "::1"}, strained=1)

        assert [(mark.name, mark.type) for mark in ran.job.skipped] == [("geo", "visit.add_geo")]
        assert run_job(record, {"address": "::1"}).job.skipped == ()
        assert run_job(known.get("visit.add_geo"), {"address": "::1"}).result == "country added"


def test_the_type_that_grows_too_old_runs_in_time() -> None:
    with job_types_of("strain.md", file="meeting_remind.py") as known:
        remind: Any = known.get("meeting.remind")

        assert remind.max_age == timedelta(minutes=10)
        assert run_job(remind, {"id": "m-7"}).state is State.SUCCEEDED
