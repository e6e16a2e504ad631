"""The real state of each resource that is compared with the template, beside the expected one."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidemill.aws.clients import AWS_ERRORS
from tidemill.domain.errors import MissingResourceError, TidemillError
from tidemill.operator.comparisons.catalogue import comparisons
from tidemill.operator.comparisons.comparison import Found, canonical
from tidemill.operator.deployments.template_values import UnknownValueError
from tidemill.operator.drift.expected_resource import Expected, Kind

MISSING: Final = "missing"
REPAIR: Final = "tidemill repair"
#: CloudFormation does not notice the deletion, so a deployment of the same template changes nothing.
RESTORE: Final = "It was deleted outside of CloudFormation: deploy the stack without it, and then with it again."


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not as the template says."""

    setting: str
    found: Any
    expected: Any

    def __str__(self) -> str:
        return f"{self.setting} is {as_text(self.found)}, and the template says {as_text(self.expected)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceState:
    """One resource."""

    expected: Expected
    #: None for a deleted resource, and for one that could not be read.
    found: Found | None = None
    differences: tuple[Difference, ...] = ()
    #: Why it could not be compared.
    error: Exception | None = None

    @property
    def state(self) -> str:
        """Return the state as the AWS API of the resource names it, or `MISSING`."""
        return self.found.state if self.found else MISSING

    @property
    def missing(self) -> bool:
        return self.found is None and self.error is None

    @property
    def stopped(self) -> bool:
        """A function is not called, though the template says that it is."""
        calls = self.expected.kind in {Kind.MAPPING, Kind.SCHEDULE}
        return calls and self.expected.enabled and not (self.found and self.found.enabled)

    @property
    def as_expected(self) -> bool:
        return self.found is not None and not self.differences

    @property
    def remedy(self) -> str:
        """The command, or the steps, that bring the expected state back. Empty if it differs in nothing."""
        if self.missing:
            return RESTORE
        return REPAIR if self.differences else ""


def reader(expected: Sequence[Expected]) -> Callable[[Expected], ResourceState]:
    """Reads each of these resources, at most once. Raises no error of AWS: `ResourceState.error` has it."""
    of = comparisons(expected)

    def read(one: Expected) -> ResourceState:
        if one.unreadable:
            return ResourceState(expected=one, error=UnknownValueError(one.unreadable))
        if not one.physical_id:
            return ResourceState(expected=one)
        try:
            found = of[one.kind].read(one)
        except MissingResourceError:
            return ResourceState(expected=one)
        except (TidemillError, *AWS_ERRORS) as error:
            return ResourceState(expected=one, error=error)
        return ResourceState(expected=one, found=found, differences=tuple(_differences(one, found)))

    return read


def _differences(expected: Expected, found: Found) -> list[Difference]:
    pairs = [(name, found.settings.get(name), value) for name, value in expected.settings.items()]
    return [Difference(*each) for each in pairs if canonical(each[1]) != canonical(each[2])]


def as_text(value: Any) -> str:
    if value is None:
        return "not set"
    return json.dumps(value, sort_keys=True) if isinstance(value, (bool, dict, list)) else str(value)
