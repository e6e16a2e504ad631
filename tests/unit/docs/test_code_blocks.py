"""A test runs each block of Python in the README and the documents."""

import ast
from collections import Counter
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest

from tests.support.document_blocks import ROOT, all_blocks, python_blocks
from tests.support.documented_job_types import GUIDES, job_types_of, run_example
from tests.support.patience import PATIENCE_SECONDS
from tidemill import Adaptive
from tidemill.testing import State, run_job

#: The blocks of Python of each page, and the test that runs them all.
RUN_BY: Final[dict[str, tuple[int, str]]] = {
    "README.md": (1, "tests/unit/docs/test_readme.py"),
    "docs/guides/flows.md": (1, "tests/integration/test_flows.py"),
    "docs/guides/adaptive-limits.md": (2, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/batch-handlers.md": (2, "tests/unit/docs/test_batch_handlers_page.py"),
    "docs/guides/batches.md": (1, "tests/integration/test_batches.py"),
    "docs/guides/breakers.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/compensation.md": (2, "tests/integration/test_compensation.py"),
    "docs/guides/debounce.md": (2, "tests/integration/test_debounce.py"),
    "docs/guides/delays-and-schedules.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/event-sources.md": (4, "tests/infrastructure/test_event_sources.py"),
    "docs/guides/events.md": (1, "tests/integration/test_events.py"),
    "docs/guides/from-python.md": (6, "tests/unit/test_client.py"),
    "docs/guides/grouped-commit.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/limits.md": (2, "tests/unit/dynamodb/limits/test_limits.py"),
    "docs/guides/logs.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/long-jobs.md": (1, "tests/integration/test_long_jobs.py"),
    "docs/guides/migrations.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/guides/outcomes.md": (1, "tests/integration/test_outcomes.py"),
    "docs/guides/signals.md": (2, "tests/integration/test_signals.py"),
    "docs/guides/steps.md": (2, "tests/integration/test_steps.py"),
    "docs/operations/runtime-configuration.md": (1, "tests/unit/docs/test_code_blocks.py"),
    "docs/reference/settings.md": (1, "tests/infrastructure/test_guides.py"),
    "docs/start/deploy.md": (1, "tests/infrastructure/test_guides.py"),
    "docs/start/install-the-engine.md": (1, "tests/infrastructure/test_guides.py"),
    "docs/start/test-a-job-type.md": (2, "tests/unit/test_client.py"),
    "docs/guides/strain.md": (2, "tests/unit/docs/test_code_blocks.py"),
}


def test_every_block_is_run_by_a_test() -> None:
    blocks = Counter(block.page for block in all_blocks() if block.tag == "python")

    assert blocks == {page: number for page, (number, _) in RUN_BY.items()}


def _is_python(text: str) -> bool:
    """Whether it is Python, and more than one value, which JSON may be as well."""
    try:
        parsed = ast.parse(text).body
    except SyntaxError:
        return False
    return len(parsed) > 1 or not all(isinstance(each, ast.Expr) for each in parsed)


def test_each_block_of_python_is_tagged_as_python() -> None:
    assert not [str(block) for block in all_blocks() if block.tag != "python" and _is_python(block.text)]


@pytest.mark.parametrize(
    ("text", "is_python"), [("def a(b):\n    return b\n", True), ("a(1)\na(2)\n", True), ('{"a": 1}\n', False)]
)
def test_code_is_python_and_a_value_is_not(text: str, is_python: bool) -> None:
    assert _is_python(text) is is_python


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


def test_the_type_that_grows_too_old_runs_in_time() -> None:
    with job_types_of("strain.md", file="meeting_remind.py") as known:
        remind: Any = known.get("meeting.remind")

        assert remind.max_age == timedelta(minutes=10)
        assert run_job(remind, {"id": "m-7"}).state is State.SUCCEEDED


def test_the_migration_of_the_guide_takes_payloads_in_both_forms() -> None:
    add_locale = run_example("migrations.md", "def add_locale")["add_locale"]

    new = add_locale({"address": "ada@example.com"})

    assert new == {"locale": "en", "address": "ada@example.com"}
    assert add_locale(new) == new
    assert add_locale({"locale": "de"}) == {"locale": "de"}


def test_the_threads_of_the_guide_have_the_context_of_the_handler() -> None:
    (example,) = python_blocks(GUIDES / "logs.md")
    job: ContextVar[str] = ContextVar("job", default="none")
    fetched: SimpleQueue[tuple[str, str]] = SimpleQueue()
    token = job.set("j-1")

    exec(example, {"fetch": lambda url: fetched.put((url, job.get())), "url": "/a"})

    job.reset(token)
    assert [fetched.get(timeout=PATIENCE_SECONDS) for _ in range(2)] == [("/a", "j-1")] * 2
