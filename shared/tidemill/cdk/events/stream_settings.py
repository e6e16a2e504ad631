"""How publish reads the jobs table's stream: filter patterns, batch size and retries. May not import CDK."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidemill import names

_THERE: Final = {"S": [{"exists": True}]}
#: Lambda calls the function only for changes that match a pattern. Other changes cost no invocation. A pattern can test
#: only what is under `dynamodb`, and can test the existence of an attribute only at the leaf under its type:
#: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
PATTERNS: Final[Sequence[Mapping[str, Any]]] = (
    # The job may need a message.
    {"dynamodb": {"NewImage": {names.STATE_ATTRIBUTE: {"S": list(names.DISPATCHED_STATES)}}}},
    # The job's group may advance, or its flow: see `NODE_GROUP` in `tidemill.domain.flows.flow_place`.
    {"dynamodb": {"NewImage": {names.STATE_ATTRIBUTE: {"S": list(names.GROUP_STATES)}, names.GROUP_ATTRIBUTE: _THERE}}},
    # A dead job is deleted that blocked its group, which may advance. Its other changes match above.
    {
        "dynamodb": {
            "OldImage": {
                names.STATE_ATTRIBUTE: {"S": ["dead"]},
                names.GROUP_ATTRIBUTE: _THERE,
                names.BLOCKS_ATTRIBUTE: {"BOOL": [{"exists": True}]},
            }
        }
    },
    # A submission may have replaced the payload of a debounced job. In the other states, it matches above.
    {
        "dynamodb": {
            "OldImage": {
                names.PAYLOAD_LOCATION_ATTRIBUTE: _THERE,
                names.DEBOUNCE_ATTRIBUTE: {"M": {"name": _THERE}},
            },
            "NewImage": {names.STATE_ATTRIBUTE: {"S": list(names.REPLACEABLE_STATES)}},
        }
    },
    # The job is deleted and its payload is left. Only a redrive writes a job again after its end.
    {
        "dynamodb": {
            "OldImage": {
                names.STATE_ATTRIBUTE: {"S": list(names.TERMINAL_STATES)},
                names.PAYLOAD_LOCATION_ATTRIBUTE: _THERE,
            }
        }
    },
)
#: The archive needs the jobs that have ended.
ARCHIVE_PATTERN: Final[Mapping[str, Any]] = {
    "dynamodb": {"NewImage": {names.STATE_ATTRIBUTE: {"S": list(names.TERMINAL_STATES)}}}
}
BATCH_SIZE: Final = 100
#: Retries of a batch. Lambda needs seven to halve a hundred records down to the one poison record. The others outlast a
#: temporary fault of SQS: the job of a record that is given up waits until reconcile or an operator acts.
RETRIES: Final = 1000
