"""The job types that a page of the documentation defines, loaded from its example, and the code that uses them."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.support.document_blocks import python_blocks
from tidemill.application.job_types import JobTypes
from tidemill.system import job_type_loader

GUIDES: Final = Path(__file__).parents[2] / "docs" / "guides"


@contextmanager
def job_types_of(page: str, *, file: str = r"\w+\.py") -> Iterator[JobTypes]:
    """The types of the file in `functions/jobs` that the page shows. Its path is relative to the guides.

    `file` is a pattern for its name, where the page shows several. Meanwhile, that file can be imported from
    `functions.jobs`.
    """
    begins = re.compile(rf"# functions/jobs/({file})\n")
    ((found, source),) = [(found, block) for block in python_blocks(GUIDES / page) if (found := begins.match(block))]
    shown = f"functions.jobs.{found[1].removesuffix('.py')}"
    package = re.sub(r"\W", "_", Path(page).name)
    with TemporaryDirectory() as folder:
        (Path(folder) / package).mkdir()
        (Path(folder) / package / "__init__.py").touch()
        (Path(folder) / package / "jobs.py").write_text(source)
        sys.path.insert(0, folder)
        try:
            known = job_type_loader.load([package])
            sys.modules[shown] = sys.modules[f"{package}.jobs"]
            yield known
        finally:
            sys.modules.pop(shown, None)
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.partition(".")[0] == package]:
                del sys.modules[name]


def run_example(page: str, begins: str) -> dict[str, Any]:
    """Run the one block of Python of the page that begins so, and return the names that it defines."""
    (example,) = [block for block in python_blocks(GUIDES / page) if block.startswith(begins)]
    names: dict[str, Any] = {}
    exec(compile(example, page, "exec"), names)
    return names
