"""The setting by which an operator forces a breaker: `breakers.payments` with `{"force": "open"}`. Pure."""

from typing import Any, Final

from tidemill.domain import option_values
from tidemill.domain.breakers.breaker import BreakerState
from tidemill.domain.errors import InvalidSettingError

_FORCE: Final = "force"
_STATES: Final = (BreakerState.OPEN, BreakerState.CLOSED)


def forced_state(name: str, value: Any) -> BreakerState:
    """Raises `InvalidSettingError`."""
    try:
        option_values.downstream_name(name)
    except ValueError as error:
        raise InvalidSettingError(str(error)) from None
    if not isinstance(value, dict) or set(value) != {_FORCE} or value[_FORCE] not in _STATES:
        raise InvalidSettingError(
            f'the value of the breaker {name} is {value!r}; use {{"{_FORCE}": "open"}} or {{"{_FORCE}": "closed"}}'
        )
    return BreakerState(value[_FORCE])
