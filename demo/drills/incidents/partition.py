"""A version of the workers of one lane, published by hand, has an address of DynamoDB that they cannot reach."""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill

#: https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
ADDRESS: Final = "AWS_ENDPOINT_URL_DYNAMODB"
#: The port `discard`: nothing listens there.
UNREACHABLE: Final = "http://127.0.0.1:9"


class Partition(Drill):
    name = "partition"
    alarm = "StoreUnavailable"
    heading = "store-unavailable"
    #: The canary of the lane does not run either.
    pages = frozenset({"LateCanary"})

    def begin(self) -> Mapping[str, str]:
        self.stage.deploy_variable("work", ADDRESS, UNREACHABLE)
        return {}
