"""The job types that a page of the documentation defines, loaded from its example."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tidemill.application.job_types import JobTypes
from tidemill.system import job_type_loader

GUIDES: Final = Path(__file__).parents[2] / "docs" / "guides"


@contextmanager
def job_types_of(page: str, *, file: str = r"\w+\.py") -> Iterator[JobTypes]:
    """The types of the file in `functions/jobs` that the page shows. Its path is relative to the guides.

    `file` is a pattern for its name, where the page shows several.
    """
    (source,) = re.findall(rf"```python\n# functions/jobs/{file}\n(.+?)```", (GUIDES / page).read_text(), re.DOTALL)
    package = re.sub(r"\W", "_", Path(page).name)
    with TemporaryDirectory() as folder:
        (Path(folder) / package).mkdir()
        (Path(folder) / package / "__init__.py").touch()
        (Path(folder) / package / "jobs.py").write_text(source)
        sys.path.insert(0, folder)
        try:
            yield job_type_loader.load([package])
        finally:
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.partition(".")[0] == package]:
                del sys.modules[name]
