"""What differs between a deployed stack and its template. Reconcile asks, for the alarm on drift."""

from collections.abc import Mapping

from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.operator import expected_state, resource_states
from tidemill.operator.resource_states import ResourceState


def drifted(stack: str) -> Mapping[str, str]:
    """By resource: how it differs, or why it could not be compared. Never raises an error of AWS."""
    found: dict[str, str] = {}
    try:
        for expected in expected_state.read(clients.cloudformation(), stack, {}):
            name = f"{expected.kind} {expected.logical_id}"
            try:
                state = resource_states.read(expected, functions=clients.lambda_(), scheduler=clients.scheduler())
            except StoreUnavailableError:
                # The calls for the others would wait as long.
                raise
            except (TidemillError, *AWS_ERRORS) as error:
                found[name] = _not_compared(error)
                continue
            if not state.as_expected:
                found[name] = _difference(state)
    except (TidemillError, *AWS_ERRORS) as error:
        found[f"stack {stack}"] = _not_compared(error)
    return found


def _difference(state: ResourceState) -> str:
    return "; ".join((f"its state is {state.state}", *state.differences))


def _not_compared(error: Exception) -> str:
    return f"not compared: {error}"
