"""The job types of the demo and of the end-to-end tests, in the local stage only, with a table of their own."""

from constructs import Construct

from stacks.application import Application
from tidemill.cdk.iam_actions import UPDATE
from tidemill.cdk.on_demand_table import on_demand_table
from tidemill.cdk.pipeline import Pipeline

PACKAGE = "functions.demo_jobs"
#: As `functions.demo_jobs.ledger` reads it.
LEDGER_TABLE = "DEMO_LEDGER_TABLE"
LEDGER_KEY = "name"


class DemoJobs(Application):
    def add_to(self, pipeline: Pipeline, asset: str) -> None:  # noqa: ARG002 - they have no function of their own
        if PACKAGE not in self.config.job_packages:
            return
        ledger = on_demand_table(Construct(pipeline, "DemoLedger"), config=self.config, partition_key=LEDGER_KEY)
        pipeline.allow_jobs([UPDATE], [ledger.table_arn])
        pipeline.add_job_variables({LEDGER_TABLE: ledger.table_name})
