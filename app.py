"""The CDK app. Takes everything from its context: it calls no AWS, reads no git and no environment."""

import sys

from aws_cdk import App

from stacks.shortener_stack import ShortenerStack
from stacks.stages import from_context
from tidemill.cdk.asset import build
from tidemill.cdk.config import SynthError
from tidemill.cdk.pipeline import PipelineStack

app = App(analytics_reporting=False)
try:
    config = from_context(app.node.get_all_context())
    asset = str(build(config))
    pipeline = PipelineStack(app, config=config, asset=asset)
except SynthError as error:
    sys.exit(f"tidemill: {error}")
ShortenerStack(app, config=config, asset=asset, pipeline=pipeline)
app.synth()
