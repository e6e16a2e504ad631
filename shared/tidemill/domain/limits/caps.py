"""Caps: how many jobs of a tenant run at once in each lane. A job above the cap waits, and uses up no attempt. Pure."""

from decimal import Decimal
from typing import Any, Final

from tidemill.domain import option_values
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.submission.tenants import TENANT_RULE, is_tenant

#: The name of the cap of each tenant that has none of its own.
DEFAULT_CAP: Final = "default"
#: The runs of one tenant and lane are the slots of one item, as those of a limit key.
LARGEST_CAP: Final = 100
LARGEST_WEIGHT: Final = 100.0


def cap_value(tenant: str, value: Any) -> int | None:
    """None for no bound. Raises `InvalidSettingError`."""
    if not is_tenant(tenant):
        raise InvalidSettingError(f"a cap names a tenant, {TENANT_RULE}, or {DEFAULT_CAP}")
    if value is None:
        return None
    try:
        cap = option_values.whole("a cap", value)
    except ValueError as error:
        raise InvalidSettingError(f"{error}, or null for no bound") from None
    if not 1 <= cap <= LARGEST_CAP:
        raise InvalidSettingError(f"a cap is {cap}; it must lie within 1 and {LARGEST_CAP}. A pause stops all jobs")
    return cap


def weight_value(tenant: str, value: Any) -> float:
    """Raises `InvalidSettingError`."""
    if tenant == DEFAULT_CAP:
        raise InvalidSettingError(f"a weight names one tenant; to change the cap of each, set caps.{DEFAULT_CAP}")
    if not is_tenant(tenant):
        raise InvalidSettingError(f"a weight names a tenant, {TENANT_RULE}")
    try:
        weight = option_values.number("a weight", value)
    except ValueError as error:
        raise InvalidSettingError(str(error)) from None
    if not 0 < weight <= LARGEST_WEIGHT:
        raise InvalidSettingError(f"a weight is {weight:g}; it must be positive and at most {LARGEST_WEIGHT:g}")
    return weight


def weighted(cap: int, weight: float) -> int:
    """The default cap times the weight as it was written, rounded down, within the bounds of a cap."""
    # Decimal: as a float, 100 times 0.29 is a little less than 29.
    return min(max(int(cap * Decimal(str(weight))), 1), LARGEST_CAP)
