"""The tenant of a request: who signed it (SigV4), or whose token it bears (JWT)."""

import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from tidemill.domain.submission.tenants import LONGEST_TENANT, is_tenant
from tidemill.http.problems import ProblemError
from tidemill.names import Env


def tenant(event: APIGatewayProxyEventV2) -> str:
    """The verified caller. It comes from the stage's authorizer, never from the request. Raises `ProblemError`."""
    authorizer = event.raw_event["requestContext"].get("authorizer") or {}
    if os.environ.get(Env.JWT):
        return _token_bearer((authorizer.get("jwt") or {}).get("claims") or {})
    return _signer(authorizer.get("iam") or {})


def _signer(iam: Mapping[str, Any]) -> str:
    """The account and the unique id of the role or user. Callers choose the session name, so it is left out.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
    """
    account, user = iam.get("accountId"), iam.get("userId") or iam.get("callerId")
    if not account or not user:
        detail = "The request carries no AWS identity. Sign it with AWS credentials (SigV4)."
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", detail)
    principal = user.partition(":")[0]
    if principal == account:
        # The root user and federated users have the id of the account. They would all share one tenant.
        detail = "The root user and federated users have no id of their own. Sign as a role or as an IAM user."
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", detail)
    return f"{account}:{principal}"


def _token_bearer(claims: Mapping[str, Any]) -> str:
    """Issuer and subject. A subject is unique within its issuer only (RFC 7519, section 4.1.2).

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
    """
    issuer, subject = claims.get("iss"), claims.get("sub")
    # No URL contains a `|` (RFC 3986), so the first `|` separates issuer and subject even if the subject has one.
    if not isinstance(issuer, str) or not issuer or "|" in issuer or not isinstance(subject, str) or not subject:
        detail = "The token lacks an issuer or a subject. Send a token with the claims iss and sub, and no | in iss."
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", detail)
    bearer = f"{issuer}|{subject}"
    if not is_tenant(bearer):
        detail = (
            "The issuer and the subject of the token are not allowed. "
            f"Both must be visible ASCII, and together shorter than {LONGEST_TENANT} characters."
        )
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", detail)
    return bearer
