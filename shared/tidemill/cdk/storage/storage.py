"""`Storage`: the table and the bucket of jobs, and the environment variables with which functions find them."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct

from tidemill import names
from tidemill.cdk.app_config import AppConfig
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.iam_actions import GET, UPDATE
from tidemill.cdk.storage.job_table import JobTable, debounce_items_of, deletions_owed_to, items_like, items_of
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.names import CONFIGURATION_KEY, PAYLOAD_ITEM_BYTES, Env

#: A payload that a job still needs is always younger. A job may be scheduled a year ahead, be dead for a year at the
#: head of a blocked group, and be kept for a year.
OLDEST_PAYLOAD_DAYS: Final = 3 * LONGEST_SPAN.days
#: S3 charges for the parts of an unfinished upload as for a file.
UNFINISHED_UPLOADS_DAYS: Final = 7


class FilesBucket(Construct):
    """Payloads that are too large for the table, and files that jobs write for users to fetch.

    The publisher deletes a payload when its job is deleted. A writer deletes one that no job came to need.

    Wake tries again. The lifecycle rule removes the rest, such as the files of writers that died.

    CloudFormation cannot delete a bucket that is not empty, and no function empties it. In a stage that is not
    protected, the operator empties the bucket before deleting the stack.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig) -> None:
        super().__init__(scope, id_)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(prefix=names.PAYLOADS_PREFIX, expiration=Duration.days(OLDEST_PAYLOAD_DAYS)),
                s3.LifecycleRule(prefix=names.EXPORTS_PREFIX, expiration=Duration.days(config.export_retention_days)),
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_UPLOADS_DAYS)),
            ],
            removal_policy=RemovalPolicy.RETAIN if config.protected else RemovalPolicy.DESTROY,
        )
        Validations.of(self.bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions-S1",
                reason="Only functions of this stack access the bucket, and each logs the job that it works for.",
            )
        )

    def allow(self, function: JobFunction, actions: Sequence[str], *, of: Sequence[str]) -> None:
        """Allow `function` these actions on the files whose object keys begin with one of the prefixes `of`.

        No function may list the bucket, so S3 answers 403 for a missing file. `DynamoPayloads` expects that:
        https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
        """
        function.allow(actions, [self.bucket.arn_for_objects(f"{prefix}*") for prefix in of])
        resource = cast(s3.CfnBucket, self.bucket.node.default_child)
        Validations.of(function).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::<{Stack.of(self).get_logical_id(resource)}.Arn>/{prefix}*]",
                    reason="The rest of the object key is known only when the file is written.",
                )
                for prefix in of
            )
        )


class Storage:
    """The jobs table and the files bucket, created in `scope`."""

    def __init__(self, scope: Construct, *, config: StageConfig) -> None:
        self.jobs = JobTable(scope, "Jobs", config=config)
        self.files = FilesBucket(scope, "Files", config=config)
        self._app_config = (
            AppConfig(scope, "Configuration", config=config) if config.configuration_source == "appconfig" else None
        )
        #: JSON with the ids of the resources of AppConfig. Empty: the table is the source of the configuration.
        self.app_config = self._app_config.place if self._app_config else ""
        #: Environment of functions that read or write jobs.
        self.storing: Mapping[str, str] = {
            Env.JOBS_TABLE: self.jobs.table.table_name,
            **({Env.EPOCH: str(config.epoch)} if config.epoch else {}),
            **({Env.APP_CONFIG: self.app_config} if self.app_config else {}),
            Env.RETENTION_DAYS: str(config.job_retention_days),
            Env.LISTING: "true" if config.listing else "",
            Env.INDEX_SHARDS: str(config.index_shards),
        }
        #: Environment of functions that also read or write payloads.
        self.loading: Mapping[str, str] = {**self.storing, Env.FILES_BUCKET: self.files.bucket.bucket_name}
        #: Environment of functions that submit jobs.
        self.submitting: Mapping[str, str] = {**self.loading, Env.JOB_PACKAGES: ",".join(config.known_packages)}
        #: The same, of functions of an app, which read no runtime configuration. Their stacks import no AppConfig ids.
        self.submitting_for_app: Mapping[str, str] = {
            name: value for name, value in self.submitting.items() if name != Env.APP_CONFIG
        }
        #: The variables of functions that may also write the files of payloads. Others write larger items.
        own_size = config.payload_item_bytes != PAYLOAD_ITEM_BYTES
        places: Mapping[str, str] = {
            **({Env.PAYLOAD_ITEM_BYTES: str(config.payload_item_bytes)} if own_size else {}),
            **({Env.COMPRESS_PAYLOADS: "true"} if config.compress_payloads else {}),
        }
        self.writing_files: Mapping[str, str] = {**self.submitting, **places}
        #: Environment of publish, which starts the jobs of flows and knows no job types.
        self.starting: Mapping[str, str] = {**self.loading, **places}
        target = config.foreground_target_seconds
        #: Environment of functions that read the level of strain.
        self.governing: Mapping[str, str] = {Env.FOREGROUND_TARGET: str(target)} if target else {}

    def allow(self, function: JobFunction, *actions: str, tenant: str | None = None) -> None:
        """Allow `function` these actions on the jobs table without its indexes. With `tenant`, on its items only."""
        function.allow(actions, [self.jobs.table.table_arn], only_if=None if tenant is None else items_of(tenant))

    def allow_debouncing(self, function: JobFunction, *, tenant: str | None = None) -> None:
        """Allow a function that may accept jobs to debounce them, too. With `tenant`, those of this tenant only."""
        only_if = None if tenant is None else debounce_items_of(tenant)
        function.allow([GET, UPDATE], [self.jobs.table.table_arn], only_if=only_if)

    def allow_owing(self, function: JobFunction, *, tenant: str | None = None) -> None:
        """Allow a function that writes the files of payloads to owe the deletion of one that it could not delete.

        Reconcile finds an item without it. With `tenant`, the deletions of the payloads of this tenant only.
        """
        function.allow([UPDATE], [self.jobs.table.table_arn], only_if=items_like(deletions_owed_to(tenant)))

    def allow_configuration(self, function: JobFunction) -> None:
        """Allow a function that may not read the whole table to read the runtime configuration."""
        function.allow([GET], [self.jobs.table.table_arn], only_if=items_like(CONFIGURATION_KEY))
        self.allow_app_config(function)

    def allow_app_config(self, function: JobFunction) -> None:
        """Allow a function that reads the runtime configuration to read its copy in AppConfig, if there is one."""
        if self._app_config:
            self._app_config.allow(function)
