"""The tags of every resource. The command line finds the deployed stacks by them."""

from aws_cdk import Stack, Tags

from tidemill import names
from tidemill.cdk.config import StageConfig


def tag(stack: Stack, config: StageConfig) -> None:
    tags = Tags.of(stack)
    tags.add(names.Tag.APP, names.APP)
    tags.add(names.Tag.STAGE, config.label)
    for key, value in config.tags:
        tags.add(key, value)
