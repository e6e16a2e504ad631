"""A script that synth runs in a separate process: it imports the job types with only the modules that a function has.

`python -I -S import_job_files.py SITE_PACKAGES JOB_PACKAGES MANIFEST FOLDER...` imports the modules of the Lambda
runtime from SITE_PACKAGES, and all others from the folders, as a function does. It writes what they declare to
MANIFEST, for `job_manifest`. If a file fails to import, or declares something wrong, it prints one line on stderr and
exits with 1.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

#: The SDK and its dependencies: https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html
OF_THE_RUNTIME: Final = frozenset({"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"})
#: https://docs.python.org/3/library/audit_events.html
_NETWORK: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})


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


def main(site_packages: str, job_packages: str, manifest: str, *folders: str) -> str | None:
    sys.path[:0] = folders
    sys.meta_path.append(Runtime(site_packages))
    sys.addaudithook(refuse_network)
    # By name: this is the module in the folders, not the one beside this script.
    loader = importlib.import_module("tidemill.system.job_type_loader")
    event_checks = importlib.import_module("tidemill.system.event_checks")
    records = importlib.import_module("tidemill.domain.events.source_records")
    packages = job_packages.split(",")
    try:
        loader.require_packages(packages)
        job_types = loader.load(packages)
        loader.require_models(job_types)
        event_checks.require_consumers(job_types)
        event_checks.require_sources(job_types)
    except loader.JobFileError as error:
        return str(error)
    written = {
        "types": [
            {
                "name": each.name,
                "lane": each.lane,
                "timeout_seconds": each.timeout and each.timeout.total_seconds(),
                "schedule": each.schedule,
                "grouped": each.grouped,
                "at": loader.declared_at(each),
            }
            for each in map(job_types.get, job_types.names())
        ],
        "sources": [
            {"name": name, "record": records.RECORD_OF[each.kind].__name__, "at": loader.declared_at(each)}
            for name, each in sorted(job_types.sources.items())
        ],
    }
    Path(manifest).write_text(json.dumps(written, indent=1), encoding="utf-8")
    return None


def refuse_network(event: str, _arguments: Any) -> None:
    """An import must not depend on AWS or another service: it runs at synth, and again at each cold start."""
    if event in _NETWORK:
        raise RuntimeError("a job file must not use the network while it is imported: let the handler do it")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
