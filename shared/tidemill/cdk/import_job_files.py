"""A script that synth runs in a separate process: it imports the job types with only the modules that a function has.

`python -I -S import_job_files.py SITE_PACKAGES JOB_PACKAGES LANE_SECONDS FOLDER...` imports the modules of the Lambda
runtime from SITE_PACKAGES, and all others from the folders, as a function does. LANE_SECONDS is a JSON object: how long
a run on each lane may take. If a file fails to import, or a type asks for more time than its lane allows, the script
prints one line on stderr and exits with 1.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from datetime import timedelta
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

#: The SDK and its dependencies: https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html
OF_THE_RUNTIME: Final = frozenset({"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"})


class Runtime(MetaPathFinder):
    """Finds the modules of the Lambda runtime in `folder`, and no other module there."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname not in OF_THE_RUNTIME:
            return None
        return PathFinder.find_spec(fullname, [self._folder], target)


def main(site_packages: str, job_packages: str, lane_seconds: str, *folders: str) -> str | None:
    sys.path[:0] = folders
    sys.meta_path.append(Runtime(site_packages))
    # By name: this is the module in the folders, not the one beside this script.
    loader = importlib.import_module("tidemill.system.job_type_loader")
    event_checks = importlib.import_module("tidemill.system.event_checks")
    packages = job_packages.split(",")
    lane_times = {lane: timedelta(seconds=seconds) for lane, seconds in json.loads(lane_seconds).items()}
    try:
        loader.require_packages(packages)
        job_types = loader.load(packages)
        loader.require_lane_time(job_types, lane_times)
        loader.require_backfill_types(job_types)
        event_checks.require_consumers(job_types)
        event_checks.require_sources(job_types)
    except loader.JobFileError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
