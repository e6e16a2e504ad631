"""What a person can do about an error of AWS."""

from collections.abc import Mapping
from typing import Final

from botocore import exceptions

_SIGN_IN: Final = (
    "Give AWS credentials as for any AWS tool: a --profile (or AWS_PROFILE), environment variables, or a role; "
    "`aws configure` or `aws sso login` sets one up."
)
_RENEW: Final = "The credentials have run out: renew them, as with `aws sso login`."
_WRONG_KEYS: Final = (
    "The credentials are not known where they were sent: check AWS_PROFILE, --profile and AWS_ENDPOINT_URL, "
    "and that the clock of this machine is right."
)
_DENIED: Final = "The identity may not do this: use another --profile, or allow it the action named above."
_REGION: Final = "Say which region with --region, AWS_REGION or the profile."
_GONE: Final = "The stack's outputs name something that is gone: deploy the stack again."
_UNREACHABLE: Final = (
    "Check the network, AWS_ENDPOINT_URL and any proxy. If the endpoint is on this machine: `make up` starts it."
)

#: The first that fits, so the more special stands before its parents.
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
    exceptions.SSLError: "The certificate is not trusted: if a proxy stands in between, name its CA in AWS_CA_BUNDLE.",
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
    """One sentence for a person, or None if there is nothing to say beyond the error itself."""
    if isinstance(error, exceptions.ClientError):
        return _BY_CODE.get(error.response.get("Error", {}).get("Code", ""))
    return next((text for kind, text in _BY_CLASS.items() if isinstance(error, kind)), None)
