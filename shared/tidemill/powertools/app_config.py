"""The runtime configuration in AWS AppConfig, read as a store of Powertools' feature flags.

The item of the jobs table stays the record of all changes. AppConfig has a copy of it, which the functions read.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from aws_lambda_powertools.utilities.feature_flags import AppConfigStore, ConfigurationStoreError
from aws_lambda_powertools.utilities.feature_flags.exceptions import StoreClientError
from botocore.exceptions import ClientError
from msgspec import Struct

from tidemill.application.configuration import ConfigurationStore
from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.operations.runtime_configuration import Change, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.waiting.pauses import Drain

#: AppConfig may refuse a session that polls more often than each 15 s.
#: https://docs.aws.amazon.com/appconfig/2019-10-09/APIReference/API_appconfigdata_StartConfigurationSession.html
POLL_INTERVAL: Final = timedelta(seconds=20)
#: A change reaches each function within this time: a deployment takes some seconds before the next poll.
ACTS_WITHIN: Final = timedelta(minutes=1)
#: A deployment takes seconds, and an environment has one at a time.
_TRIES: Final = 10
_PAUSE_SECONDS: Final = 3.0
#: Versions beside that of a new change. The history is in the jobs table.
_KEPT: Final = 20
#: https://docs.aws.amazon.com/appconfig/2019-10-09/APIReference/API_appconfigdata_GetLatestConfiguration.html
_NOTHING_DEPLOYED: Final = "ResourceNotFoundException"


class Place(Struct, frozen=True, kw_only=True):
    """The ids of the resources of AppConfig."""

    application: str
    environment: str
    profile: str
    strategy: str


class AppConfigConfiguration:
    """`ConfigurationStore` over the store in the jobs table, with a copy in AppConfig.

    `reader` is a client of `appconfigdata`, and `writer` one of `appconfig`.
    """

    def __init__(
        self,
        record: ConfigurationStore,
        *,
        place: Place,
        table: str,
        reader: Any,
        writer: Callable[[], Any],
        pause: Callable[[float], None],
    ) -> None:
        self._record = record
        self._place = place
        self._table = table
        self._reader = reader
        self._writer = writer
        self._pause = pause
        self._session: AppConfigStore | None = None
        self._answered = False

    def read(self, *, consistent: bool = False) -> RuntimeConfiguration:
        """The copy, or with `consistent` the record.

        Until AppConfig has answered once, and while its copy is of another table, it is the record, too.
        """
        if consistent:
            return _slow(self._record.read(consistent=True))
        try:
            return self._copied()
        except StoreUnavailableError:
            if self._answered:
                raise
            return _slow(self._record.read())

    def acting(self) -> RuntimeConfiguration:
        try:
            return self._copied()
        except StoreUnavailableError as error:
            record = _slow(self._record.read(consistent=True))
            # Nothing was deployed yet, so every function reads the record.
            if record.version == 0 or _NOTHING_DEPLOYED in str(error):
                return record
            raise

    def _copied(self) -> RuntimeConfiguration:
        copy = self._copy()
        self._answered = True
        # A restored table has settings of its own, such as the pauses of `tidemill recover`.
        if copy["table"] != self._table:
            return _slow(self._record.read())
        return _slow(RuntimeConfiguration(version=int(copy["version"]), document=copy["document"]))

    def write(self, configuration: RuntimeConfiguration, change: Change, drain: Drain | None = None) -> None:
        """Write the record, then the copy. Raises also `StoreUnavailableError` if only the record was written."""
        self._record.write(configuration, change, drain)
        try:
            self.deploy()
        except StoreUnavailableError as error:
            raise StoreUnavailableError(
                f"version {configuration.version} is in the history, but does not act until `tidemill config deploy` "
                f"or the next change: {error}"
            ) from error

    def deploy(self) -> None:
        try:
            self._deploy_latest()
        except AWS_ERRORS as error:
            raise StoreUnavailableError(f"AppConfig did not take the configuration: {error}") from error

    def history(self) -> Iterator[Change]:
        return self._record.history()

    def _copy(self) -> dict[str, Any]:
        place = self._place
        if self._session is None:
            self._session = AppConfigStore(
                application=place.application,
                environment=place.environment,
                name=place.profile,
                # `CachedConfiguration` decides when to read.
                max_age=0,
                boto3_client=self._reader,
            )
        try:
            return self._session.get_raw_configuration
        # The second is for AccessDenied alone, and no subclass of the first.
        except (ConfigurationStoreError, StoreClientError) as error:
            # A token is for one call and for a day. Powertools would keep one that was used or is too old.
            self._session = None
            raise StoreUnavailableError(f"AppConfig did not answer: {error.__cause__ or error}") from error

    def _deploy_latest(self) -> None:
        """Deploy the record, until AppConfig has the version that it has then: other operators write and deploy too.

        A conflict is mostly with such a deployment, of a newer version, which this one must not replace.
        """
        self._delete_old()
        present = self._record.read(consistent=True)
        number, conflicts = self._hosted(present), 0
        while True:
            try:
                self._start(number)
                deployed = present.version
            except ClientError as error:
                deployed, conflicts = None, conflicts + 1
                if conflicts == _TRIES or error.response["Error"]["Code"] != "ConflictException":
                    raise
                self._pause(_PAUSE_SECONDS)
            latest = self._record.read(consistent=True)
            if latest.version == deployed:
                return
            if latest.version != present.version:
                present, number = latest, self._hosted(latest)

    def _hosted(self, present: RuntimeConfiguration) -> str:
        """The number that AppConfig gives to its copy."""
        copy = {"table": self._table, "version": present.version, "document": present.document}
        made = self._writer().create_hosted_configuration_version(
            **self._profile, ContentType="application/json", Content=json.dumps(copy).encode()
        )
        return str(made["VersionNumber"])

    def _start(self, number: str) -> None:
        self._writer().start_deployment(
            **self._profile,
            EnvironmentId=self._place.environment,
            DeploymentStrategyId=self._place.strategy,
            ConfigurationVersion=number,
        )

    def _delete_old(self) -> None:
        """AppConfig keeps a bounded number of versions, and takes no further one then. The next change tries again.

        https://docs.aws.amazon.com/appconfig/2019-10-09/APIReference/API_CreateHostedConfigurationVersion.html
        """
        writer = self._writer()
        with suppress(*AWS_ERRORS):
            pages = writer.get_paginator("list_hosted_configuration_versions").paginate(**self._profile)
            numbers = sorted(each["VersionNumber"] for page in pages for each in page["Items"])
            for number in numbers[:-_KEPT]:
                writer.delete_hosted_configuration_version(**self._profile, VersionNumber=number)

    @property
    def _profile(self) -> dict[str, str]:
        return {"ApplicationId": self._place.application, "ConfigurationProfileId": self._place.profile}


def _slow(read: RuntimeConfiguration) -> RuntimeConfiguration:
    return replace(read, acts_within=ACTS_WITHIN)


def over(record: ConfigurationStore, *, place: str, table: str) -> AppConfigConfiguration:
    """With the clients of this process. `place` is the JSON of `Env.APP_CONFIG`."""
    return AppConfigConfiguration(
        record,
        place=Place(**json.loads(place)),
        table=table,
        reader=clients.app_config_data(),
        writer=clients.app_config,
        pause=time.sleep,
    )
