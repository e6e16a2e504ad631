"""The AWS clients: made once, tuned once, and their errors translated here."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

#: The wire form of an item: `{"state": {"S": "queued"}}`.
Item = dict[str, Any]

#: Whatever the SDK raises has one of these two roots.
AWS_ERRORS: Final = (BotoCoreError, ClientError)

#: What AWS answers when a call may well work a moment later.
_PASSING: Final = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "ThrottlingException",
        "Throttling",
        "TransactionInProgressException",
    }
)

#: How many calls of one client may be under way at once. Who has more threads has some that wait for a connection.
POOL_SIZE: Final = 16

#: Validating parameters and composing the user agent are a third of a call's CPU in boto3. A call that hangs must
#: fail well within an invocation, and the pool must hold a batch's threads.
_CONFIG: Final = Config(
    connect_timeout=1,
    read_timeout=2,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=POOL_SIZE,
    parameter_validation=False,
    user_agent="tidemill",
    tcp_keepalive=True,
)


def choose(*, profile: str | None, region: str | None) -> None:
    """Use this profile and region, where given, for the clients that are yet to be made. For a person's tools."""
    boto3.setup_default_session(profile_name=profile, region_name=region)


def credentials() -> Credentials:
    """The caller's, from wherever the SDK finds them. Raises `StoreUnavailableError` when there are none."""
    session = boto3.DEFAULT_SESSION or boto3.Session()
    with translated():
        found = session.get_credentials()
        if found is None:
            raise NoCredentialsError
        return found


@cache
def cloudformation() -> "CloudFormationClient":
    return boto3.client("cloudformation", config=_CONFIG)


@cache
def cloudwatch() -> "CloudWatchClient":
    return boto3.client("cloudwatch", config=_CONFIG)


@cache
def dynamodb() -> "DynamoDBClient":
    return boto3.client("dynamodb", config=_CONFIG)


@cache
def s3() -> Any:
    return boto3.client("s3", config=_CONFIG)


@cache
def sqs() -> "SQSClient":
    return boto3.client("sqs", config=_CONFIG)


@cache
def secrets() -> "SecretsManagerClient":
    return boto3.client("secretsmanager", config=_CONFIG)


@contextmanager
def translated() -> Iterator[None]:
    """Raise our errors for passing ones; a programming error (a denied call, a bad expression) stays itself."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == "TransactionConflictException":
            raise TransactionConflictError(str(error)) from error
        if code in _PASSING or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:  # noqa: PLR2004
            raise StoreUnavailableError(str(error)) from error
        raise
    except BotoCoreError as error:
        raise StoreUnavailableError(str(error)) from error
