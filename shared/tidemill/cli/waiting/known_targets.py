"""Whether anything is known by the name of a pause's target or of a setting. An unknown one may be a typo."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from tidemill.application.job_filter import JobFilter
from tidemill.aws.clients import AWS_ERRORS
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import say
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.errors import TidemillError
from tidemill.domain.operations.overrides import TYPE_PREFIX
from tidemill.domain.operations.runtime_configuration import BREAKER_PREFIX
from tidemill.domain.operations.type_overrides import Overridden
from tidemill.domain.waiting.pauses import Scope, Target
from tidemill.names import RECONCILE_READ_UNITS
from tidemill.system import clock

#: At most so many limit keys are read. Each has an item.
_MOST_LINES: Final = 1_000
#: About a page of the table.
_MOST_READ_UNITS: Final = 100.0


def unknown(installation: Installation, target: Target) -> Iterator[str]:
    """Why the name may be wrong. Nothing for a tenant or a group, whose names callers choose, or if a read fails."""
    with suppress(TidemillError, *AWS_ERRORS):
        yield from _unknown(installation, target)


def unknown_setting(installation: Installation, name: str) -> Iterator[str]:
    """Why the name may be wrong. Nothing for a setting other than of a type or breaker, or if a read fails."""
    with suppress(TidemillError, *AWS_ERRORS):
        if name.startswith(TYPE_PREFIX):
            type_ = Overridden.parse(name.removeprefix(TYPE_PREFIX)).type
            if type_ and type_ not in installation.deployment.schedules:
                yield from _unused_type(installation, type_)
        elif name.startswith(BREAKER_PREFIX):
            (found,) = installation.breakers([name.removeprefix(BREAKER_PREFIX)])
            if found.breaker == Breaker(name=found.breaker.name):
                yield "no worker has seen a call of this breaker fail"


def warn_if_misspelt(name: object, reasons: Iterator[str]) -> None:
    for why in reasons:
        say(visible(f"Warning: {name} may be misspelt: {why}."), style="bold yellow")


def _unknown(installation: Installation, target: Target) -> Iterator[str]:
    schedules = ", ".join(sorted(installation.deployment.schedules)) or "none"
    periodic = target.name in installation.deployment.schedules
    match target.scope:
        case Scope.SCHEDULE if not periodic:
            yield f"no periodic type has this name; those of the stage are: {schedules}"
        case Scope.TYPE if not periodic:
            yield from _unused_type(installation, target.name)
        case Scope.LIMIT:
            lines = list(islice(installation.limits.lines(), _MOST_LINES))
            if len(lines) < _MOST_LINES and target.name not in {line.key for line in lines}:
                yield "no job has used this limit key; `tidemill explain ID` shows the key of a job"


def _unused_type(installation: Installation, name: str) -> Iterator[str]:
    items = 0
    for step in installation.search(RECONCILE_READ_UNITS).steps(
        JobFilter(types=(name,)), now=clock.now(), after=None, most_jobs=1, most_units=_MOST_READ_UNITS
    ):
        if step.jobs:
            return
        items = step.items
    yield f"it is not periodic, and {count(items, 'item')} of the table hold no job of this type"
