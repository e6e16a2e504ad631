"""A script that synth runs in a process of its own: imports the job types with only what a function has.

`python -I -S import_job_files.py SITE_PACKAGES JOB_PACKAGES FOLDER...` takes from SITE_PACKAGES what the Lambda runtime
brings, and everything else from the folders, as a function does. It exits with 1 and prints one line on stderr for the
file that fails to import.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

#: The SDK and what it stands on: https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html
OF_THE_RUNTIME: Final = frozenset({"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"})


class Runtime(MetaPathFinder):
    """Finds in `folder` what the runtime brings, and nothing else that lies there."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname not in OF_THE_RUNTIME:
            return None
        return PathFinder.find_spec(fullname, [self._folder], target)


def main(site_packages: str, job_packages: str, *folders: str) -> str | None:
    sys.path[:0] = folders
    sys.meta_path.append(Runtime(site_packages))
    # By name: these are the modules of the folders, and not those beside this one.
    job_types = importlib.import_module("tidemill.system.job_type_loader")
    try:
        job_types.load(job_packages.split(","))
    except job_types.JobFileError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
