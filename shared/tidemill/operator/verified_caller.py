"""Who runs a command, for the audit entries of jobs."""

import getpass
from typing import TYPE_CHECKING

from tidemill.aws.clients import AWS_ERRORS

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient

#: Before a name that nothing has verified.
UNVERIFIED = "unverified:"


def verified_caller(client: "STSClient") -> str:
    """The ARN of the credentials, as STS verifies it, or `UNVERIFIED` and the local user's name if STS gives none.

    It needs no right, and no policy can deny it:
    https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
    """
    try:
        return client.get_caller_identity()["Arn"]
    except AWS_ERRORS:
        return UNVERIFIED + _local_user()


def _local_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user in a container may have no name
        return "unknown"
