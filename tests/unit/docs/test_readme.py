"""The README and the documents are true: the job type runs, the settings exist, and each link has its target."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stacks.applications.shortener import Shortener
from tests.support.builders import NOW, SECOND, TENANT
from tests.support.document_blocks import python_blocks
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType
from tidemill.cdk.settings import SETTINGS
from tidemill.domain.errors import InvalidPayloadError, PermanentJobError
from tidemill.system import job_type_loader

README = Path(__file__).parents[3] / "README.md"
SETTINGS_PAGE = README.parent / "docs" / "reference" / "settings.md"
DOCUMENTS = [
    README,
    README.with_name("CHANGELOG.md"),
    README.with_name("CONTRIBUTING.md"),
    *sorted(README.parent.glob("docs/**/*.md")),
]
LONGEST_README_LINES = 100
RUN = Run(
    job_id="1", tenant=TENANT, attempt=1, max_attempts=5, submitted_at=NOW, deadline=NOW + SECOND, idempotency_key="1"
)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobType]:
    """The file that the README tells a newcomer to write, in a package of its own."""
    (block,) = python_blocks(README)
    found = re.match(r"# functions/jobs/(\w+)\.py\n(.+)", block, re.DOTALL)
    assert found is not None
    package = tmp_path / "readme_jobs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / f"{found[1]}.py").write_text(found[2])
    monkeypatch.syspath_prepend(tmp_path)
    yield job_type_loader.load(["readme_jobs"]).get("text.count")
    for name in [name for name in sys.modules if name.startswith("readme_jobs")]:
        del sys.modules[name]


def test_the_job_type_of_the_readme_counts_words(example: JobType) -> None:
    assert example(example.parse(json.dumps({"text": "to be or not"})), RUN) == {"words": 4, "attempt": 1}


def test_the_job_type_of_the_readme_refuses_what_it_says_it_refuses(example: JobType) -> None:
    with pytest.raises(PermanentJobError):
        example(example.parse(json.dumps({"text": " "})), RUN)
    with pytest.raises(InvalidPayloadError):
        example.parse("{}")


def test_the_page_of_settings_names_each_setting_and_no_other() -> None:
    (table,) = re.findall(
        r"\| setting \| what it does \|\n\|---\|---\|\n(.+?)\n\n", SETTINGS_PAGE.read_text(), re.DOTALL
    )
    named = re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines()))
    assert sorted(named) == sorted(["stage", *SETTINGS, *Shortener.settings])


@pytest.mark.parametrize("document", DOCUMENTS, ids=[str(path.relative_to(README.parent)) for path in DOCUMENTS])
def test_every_link_of_a_document_has_its_target(document: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", document.read_text()):
        page = document.parent / target if target else document
        assert page.exists(), f"{document.name} links to {target}"
        if heading:
            assert heading in _anchors(page), f"{document.name} links to {target}#{heading}"


def test_the_index_names_every_page() -> None:
    index = README.parent / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+)\)", index.read_text())}
    pages = {path for path in index.parent.rglob("*.md") if path.parent.name != "decisions" and path != index}

    assert pages <= linked


def test_the_readme_is_at_most_two_screens() -> None:
    assert len(README.read_text().splitlines()) <= LONGEST_README_LINES


def _anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes from headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
