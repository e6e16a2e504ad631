"""The CDK app. It reads only its context: no AWS call, no git, no environment variables."""

import sys

from aws_cdk import App

from stacks.composition import compose
from tidemill.cdk.synth_errors import SynthError
from tidemill.cost import worst_day

app = App(analytics_reporting=False)
try:
    config = compose(app)
except SynthError as error:
    sys.exit(f"tidemill: {error}")
assembly = app.synth()
# The embedded AWS costs nothing.
if not config.wheels_of_host:
    sys.stderr.write(worst_day.sentence([stack.template for stack in assembly.stacks]) + "\n")
