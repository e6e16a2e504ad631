"""Creates and configures each AWS client once, and translates AWS errors to errors of Tidemill."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import boto3
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from tidemill.domain.errors import (
    MissingResourceError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
)

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

#: The oldest SDK with which the tests of the store have passed. The functions use the SDK of their runtime, which is
#: older than the one that this app locks: https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html
OLDEST_BOTO3: Final = (1, 34, 145)

#: The wire form of an item: `{"state": {"S": "queued"}}`.
Item = dict[str, Any]

#: The base classes of all errors of the SDK.
AWS_ERRORS: Final = (BotoCoreError, ClientError)

#: Error codes of transient failures.
_TRANSIENT: Final = frozenset(
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

#: The error codes of DynamoDB and S3 for a table or bucket that does not exist in this account and region.
_MISSING: Final = frozenset({"NoSuchBucket", "ResourceNotFoundException"})

#: The most concurrent calls of one client. Further threads wait for a connection.
POOL_SIZE: Final = 16

#: Parameter validation and the user agent take a third of the CPU time of a boto3 call, so both are reduced. A hanging
#: call must fail well within an invocation, and the pool must serve the threads of a batch.
CONFIG: Final = Config(
    connect_timeout=1,
    read_timeout=2,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=POOL_SIZE,
    parameter_validation=False,
    user_agent="tidemill",
    tcp_keepalive=True,
)


Client = TypeVar("Client")

#: Held while a client is created for which several threads may ask.
_CREATING: Final = threading.Lock()


def _shared_by_threads(create: Callable[[], Client]) -> Callable[[], Client]:
    """Create the client once, whichever threads ask for it, and no two such clients at a time.

    The session of boto3 is not thread-safe, and each client takes as much CPU time and memory as a hundred calls.
    """
    created = cache(create)

    @wraps(create)
    def shared() -> Client:
        with _CREATING:
            return created()

    return shared


class OldSdkError(TidemillError):
    """The AWS SDK of this environment lacks what the store needs."""


def require_sdk(version: str = boto3.__version__) -> None:
    """Raises `OldSdkError` if the SDK is older than `OLDEST_BOTO3`."""
    if tuple(map(int, version.split(".")[:3])) < OLDEST_BOTO3:
        oldest = ".".join(map(str, OLDEST_BOTO3))
        raise OldSdkError(f"boto3 {version} is older than {oldest}: add boto3 to functions/requirements.txt")


def choose(*, profile: str | None, region: str | None) -> None:
    """Use this profile and region, where given, for clients created later. For the command line."""
    boto3.setup_default_session(profile_name=profile, region_name=region)


def credentials() -> Credentials:
    """The credentials that the SDK finds for the caller. Raises `StoreUnavailableError` without any."""
    session = boto3.DEFAULT_SESSION or boto3.Session()
    with translated():
        found = session.get_credentials()
        if found is None:
            raise NoCredentialsError
        return found


@cache
def cloudformation() -> "CloudFormationClient":
    return boto3.client("cloudformation", config=CONFIG)


@cache
def cloudwatch() -> "CloudWatchClient":
    return boto3.client("cloudwatch", config=CONFIG)


@cache
def dynamodb() -> "DynamoDBClient":
    require_sdk()
    return boto3.client("dynamodb", config=CONFIG)


@cache
def lambda_() -> Any:
    return boto3.client("lambda", config=CONFIG)


@cache
def invocations() -> Any:
    """For the command line, which waits for a function: also for its start, and for as long as it may run."""
    return boto3.client("lambda", config=CONFIG.merge(Config(read_timeout=60)))


@cache
def scheduler() -> Any:
    return boto3.client("scheduler", config=CONFIG)


@cache
def logs() -> "CloudWatchLogsClient":
    """For the command line. A search takes seconds, and other users of the account share its few calls a second."""
    patient = Config(read_timeout=60, retries={"mode": "standard", "total_max_attempts": 8})
    return boto3.client("logs", config=CONFIG.merge(patient))


@_shared_by_threads
def s3() -> Any:
    """The jobs of a batch with large payloads ask for it in their threads, all at once."""
    return boto3.client("s3", config=CONFIG)


@cache
def s3_uploads() -> Any:
    """For the command line. S3 answers to a file of gigabytes after some seconds."""
    return boto3.client("s3", config=CONFIG.merge(Config(read_timeout=60)))


@_shared_by_threads
def sqs() -> "SQSClient":
    """A worker asks for it at the end of an invocation, while a handler that ran too long may ask for another one."""
    return boto3.client("sqs", config=CONFIG)


@cache
def sqs_hints() -> "SQSClient":
    """For messages that a caller waits for, and that may get lost."""
    hasty = Config(connect_timeout=0.5, read_timeout=0.5, retries={"mode": "standard", "total_max_attempts": 1})
    return boto3.client("sqs", config=CONFIG.merge(hasty))


@cache
def app_config_data() -> Any:
    return boto3.client("appconfigdata", config=CONFIG)


@cache
def app_config() -> Any:
    """For the command line."""
    return boto3.client("appconfig", config=CONFIG.merge(Config(read_timeout=10)))


@cache
def sts() -> "STSClient":
    return boto3.client("sts", config=CONFIG)


@cache
def secrets() -> "SecretsManagerClient":
    return boto3.client("secretsmanager", config=CONFIG)


@contextmanager
def translated() -> Iterator[None]:
    """Translate transient errors, and a wrong name. Other errors, such as a denied call, pass unchanged."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == "TransactionConflictException":
            raise TransactionConflictError(str(error)) from error
        if code in _TRANSIENT or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:  # noqa: PLR2004
            raise StoreUnavailableError(str(error)) from error
        if code in _MISSING:
            raise MissingResourceError(str(error)) from error
        raise
    except BotoCoreError as error:
        raise StoreUnavailableError(str(error)) from error
