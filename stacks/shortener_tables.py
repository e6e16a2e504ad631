"""What the URL shortener keeps. Made beside the lanes, not beside its API, because the worker writes the clicks."""

from aws_cdk import Acknowledgment, RemovalPolicy, Validations
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from shared import names
from stacks.config import StageConfig
from stacks.table import on_demand_table


class ShortenerTables(Construct):
    """The links, the clicks and their counters, and the key under which addresses are hashed."""

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
        self.address_key = secretsmanager.Secret(
            self,
            "AddressKey",
            description=f"{config.name}: keys the hash of a client's address",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=RemovalPolicy.RETAIN if config.protected else RemovalPolicy.DESTROY,
        )
        Validations.of(self.address_key).acknowledge(
            Acknowledgment(
                id="AwsSolutions-SMG4",
                reason="A new key makes every visitor a new one. It is changed by hand, when that is what is wanted.",
            )
        )
