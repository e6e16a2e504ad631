"""What an operator can do about an AWS error."""

from collections.abc import Mapping
from typing import Final

from botocore import exceptions

_SIGN_IN: Final = (
    "Configure AWS credentials with --profile, AWS_PROFILE, environment variables or a role. "
    "`aws configure` or `aws sso login` sets up a profile."
)
_RENEW: Final = "The credentials have expired. Renew them, for example with `aws sso login`."
_WRONG_KEYS: Final = (
    "The endpoint does not accept the credentials. Check AWS_PROFILE, --profile and AWS_ENDPOINT_URL, "
    "and the clock of this machine."
)
_DENIED: Final = "The identity may not do this. Use another --profile, or allow the action named above in IAM."
_REGION: Final = "Set the region with --region, AWS_REGION or the profile."
_GONE: Final = "The stack's outputs name a resource that no longer exists. Deploy the stack again."
_UNREACHABLE: Final = (
    "Check the network, AWS_ENDPOINT_URL and the proxy. If the endpoint is on this machine, start it with `make up`."
)

#: The first match wins, so a subclass comes before its parents.
_BY_CLASS: Final[Mapping[type[Exception], str]] = {
    exceptions.SSOError: _RENEW,
    exceptions.TokenRetrievalError: _RENEW,
    exceptions.LoginError: _RENEW,
    exceptions.NoCredentialsError: _SIGN_IN,
    exceptions.PartialCredentialsError: _SIGN_IN,
    exceptions.CredentialRetrievalError: _SIGN_IN,
    exceptions.ProfileNotFound: "Check --profile and AWS_PROFILE against `aws configure list-profiles`.",
    exceptions.NoRegionError: _REGION,
    exceptions.InvalidRegionError: _REGION,
    exceptions.SSLError: "The certificate is not trusted. Behind a proxy, set AWS_CA_BUNDLE to its CA file.",
    exceptions.ConnectionError: _UNREACHABLE,
    exceptions.HTTPClientError: _UNREACHABLE,
}
_BY_CODE: Final[Mapping[str, str]] = {
    "ExpiredToken": _RENEW,
    "ExpiredTokenException": _RENEW,
    "RequestExpired": _RENEW,
    "AuthFailure": _WRONG_KEYS,
    "IncompleteSignature": _WRONG_KEYS,
    "InvalidAccessKeyId": _WRONG_KEYS,
    "InvalidClientTokenId": _WRONG_KEYS,
    "InvalidSignatureException": _WRONG_KEYS,
    "SignatureDoesNotMatch": _WRONG_KEYS,
    "UnrecognizedClientException": _WRONG_KEYS,
    "AccessDenied": _DENIED,
    "AccessDeniedException": _DENIED,
    "UnauthorizedOperation": _DENIED,
    "AWS.SimpleQueueService.NonExistentQueue": _GONE,
    "QueueDoesNotExist": _GONE,
    "ResourceNotFoundException": _GONE,
}


def remedy(error: BaseException) -> str | None:
    """One or two sentences, or None if the error itself says everything."""
    if isinstance(error, exceptions.ClientError):
        return _BY_CODE.get(error.response.get("Error", {}).get("Code", ""))
    return next((text for kind, text in _BY_CLASS.items() if isinstance(error, kind)), None)
