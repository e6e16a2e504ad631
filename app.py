"""The CDK app. Everything comes from its context: it calls no AWS, and reads neither git nor the environment."""

import sys

from aws_cdk import App

from stacks.composition import compose
from tidemill.cdk.config import SynthError

app = App(analytics_reporting=False)
try:
    compose(app)
except SynthError as error:
    sys.exit(f"tidemill: {error}")
app.synth()
