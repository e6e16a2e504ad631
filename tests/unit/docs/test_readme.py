"""The README is true: its job type is found and runs, its settings exist, its links lead somewhere."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.builders import NOW, SECOND, TENANT
from tidemill.application.job_types import JobType, Run
from tidemill.cdk.settings import SETTINGS
from tidemill.domain.errors import InvalidPayloadError, PermanentJobError
from tidemill.system import job_type_loader

README = Path(__file__).parents[3] / "README.md"
RUN = Run(
    job_id="1", tenant=TENANT, attempt=1, max_attempts=5, submitted_at=NOW, deadline=NOW + SECOND, idempotency_key="1"
)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobType]:
    """The file that the README tells a newcomer to write, in a package of its own."""
    found = re.search(r"```python\n# functions/jobs/(\w+)\.py\n(.+?)```", README.read_text(), re.DOTALL)
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
    assert example(example.parse({"text": "to be or not"}), RUN) == {"words": 4, "attempt": 1}


def test_the_job_type_of_the_readme_refuses_what_it_says_it_refuses(example: JobType) -> None:
    with pytest.raises(PermanentJobError):
        example(example.parse({"text": " "}), RUN)
    with pytest.raises(InvalidPayloadError):
        example.parse(json.loads("{}"))


def test_the_settings_of_the_readme_are_those_that_there_are() -> None:
    (table,) = re.findall(r"\| setting \| what it does \|\n\|---\|---\|\n(.+?)\n\n", README.read_text(), re.DOTALL)
    named = re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines()))
    assert sorted(named) == sorted(["stage", *SETTINGS])


def test_every_link_of_the_readme_and_the_documents_leads_somewhere() -> None:
    for document in (README, README.with_name("CHANGELOG.md"), *README.parent.glob("docs/**/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
