"""The CDK app. Takes everything from its context: it calls no AWS, reads no git and no environment."""

import sys

from aws_cdk import App

from stacks.asset import build
from stacks.config import SynthError
from stacks.pipeline_stack import PipelineStack
from stacks.shortener_stack import ShortenerStack
from stacks.stages import from_context

app = App(analytics_reporting=False)
try:
    config = from_context(app.node.get_all_context())
    asset = str(build(config))
    pipeline = PipelineStack(app, config=config, asset=asset)
except SynthError as error:
    sys.exit(f"tidemill: {error}")
ShortenerStack(app, config=config, asset=asset, pipeline=pipeline)
app.synth()
