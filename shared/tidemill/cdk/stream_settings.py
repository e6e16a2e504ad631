"""How the jobs table's stream is read: what publish is called for, and how often it is tried. May not import CDK."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidemill import names

_THERE: Final = {"S": [{"exists": True}]}
#: The changes that the function is called for, each pattern for a reason of its own; all others cost no invocation.
#: Only what is under `dynamodb` can be asked about, and whether an attribute exists only of the leaf under its type:
#: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
PATTERNS: Final[Sequence[Mapping[str, Any]]] = (
    # It may owe a message.
    {"dynamodb": {"NewImage": {names.STATE_ATTRIBUTE: {"S": list(names.DISPATCHED_STATES)}}}},
    # Its group may go on.
    {"dynamodb": {"NewImage": {names.STATE_ATTRIBUTE: {"S": list(names.ENDED_STATES)}, names.GROUP_ATTRIBUTE: _THERE}}},
    # It is gone, and its payload is not. A job that has ended is not written again, but for a redrive.
    {
        "dynamodb": {
            "OldImage": {
                names.STATE_ATTRIBUTE: {"S": list(names.TERMINAL_STATES)},
                names.PAYLOAD_LOCATION_ATTRIBUTE: _THERE,
            }
        }
    },
)
BATCH_SIZE: Final = 100
#: Tries of a batch beyond the first. Halving a hundred records until the poison one is alone takes seven of them; the
#: rest outlast a fault of SQS that passes, for a record that is given up dispatches nothing until somebody acts.
RETRIES: Final = 1000
