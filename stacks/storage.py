"""`Storage`: where jobs are kept, and what a function must be told to find them."""

from collections.abc import Mapping

from constructs import Construct

from shared.names import Env
from stacks.config import StageConfig
from stacks.files_bucket import FilesBucket
from stacks.job_function import JobFunction
from stacks.job_table import JobTable


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
