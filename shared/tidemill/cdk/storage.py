"""`Storage`: where jobs are kept, and what a function must be told to find them."""

from collections.abc import Mapping

from constructs import Construct

from tidemill.cdk.config import StageConfig
from tidemill.cdk.files_bucket import FilesBucket
from tidemill.cdk.job_function import JobFunction
from tidemill.cdk.job_table import JobTable
from tidemill.names import Env


class Storage:
    """The table of jobs and the bucket of files, made in `scope`."""

    def __init__(self, scope: Construct, *, config: StageConfig) -> None:
        self.jobs = JobTable(scope, "Jobs", config=config)
        self.files = FilesBucket(scope, "Files", config=config)
        #: For functions that read or write jobs.
        self.storing: Mapping[str, str] = {
            Env.JOBS_TABLE: self.jobs.table.table_name,
            Env.RETENTION_DAYS: str(config.job_retention_days),
            Env.LISTING: "true" if config.listing else "",
        }
        #: For those that read or write payloads, too.
        self.loading: Mapping[str, str] = {**self.storing, Env.FILES_BUCKET: self.files.bucket.bucket_name}
        #: For those that submit jobs.
        self.submitting: Mapping[str, str] = {**self.loading, Env.JOB_PACKAGES: ",".join(config.job_packages)}

    def allow(self, function: JobFunction, *actions: str) -> None:
        """Let `function` do exactly this with the items of the table of jobs."""
        function.allow(actions, [self.jobs.table.table_arn])
