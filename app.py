"""The CDK app. It reads only its context: no AWS call, no git, no environment variables."""

import sys

from aws_cdk import App

from stacks.composition import compose
from tidemill.cdk.synth_errors import SynthError

app = App(analytics_reporting=False)
try:
    compose(app)
except SynthError as error:
    sys.exit(f"tidemill: {error}")
app.synth()
