"""Tables and secret of the URL shortener. They are in the pipeline's stack, because the workers write the clicks."""

from constructs import Construct

from shortener import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.key_secret import key_secret
from tidemill.cdk.storage.on_demand_table import on_demand_table


class ShortenerTables(Construct):
    """The links, the clicks with their counters, and the key of the hash of client addresses."""

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig) -> None:
        super().__init__(scope, id_)
        self.links = on_demand_table(Construct(self, "Links"), config=config, partition_key=names.LINK_KEY)
        self.clicks = on_demand_table(
            Construct(self, "Clicks"),
            config=config,
            partition_key=names.CLICK_KEY,
            sort_key=names.CLICK_SORT_KEY,
            ttl_attribute=names.TTL_ATTRIBUTE,
        )
        self.address_key = key_secret(
            self,
            "AddressKey",
            config=config,
            use="key of the hash of client addresses",
            why_not_rotated="An operator rotates the key, without an outage: docs/operations/operate.md describes it.",
        )
