"""Finds the job types: every `JobType` that stands in a module of the given packages."""

import importlib
import pkgutil
from collections.abc import Iterable

from shared.application.job_types import JobType, JobTypes
from shared.domain.errors import MillraceError


class DuplicateJobTypeError(MillraceError):
    """Two modules declare a job type of the same name."""


def load(packages: Iterable[str]) -> JobTypes:
    """Import every module of `packages`; a type is known because it stands there, not because it registered itself."""
    found: dict[str, JobType] = {}
    for package in packages:
        for module_name in _modules(package):
            for value in vars(importlib.import_module(module_name)).values():
                if isinstance(value, JobType) and found.setdefault(value.name, value) is not value:
                    raise DuplicateJobTypeError(f"job type {value.name!r} is declared again in {module_name}")
    return JobTypes(found)


def _modules(package: str) -> list[str]:
    paths = importlib.import_module(package).__path__
    return sorted(module.name for module in pkgutil.iter_modules(paths, prefix=f"{package}."))
