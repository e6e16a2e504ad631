"""The HTTP API described in OpenAPI 3.1, from the very forms that are checked. A test holds it against the handlers.

https://spec.openapis.org/oas/v3.1.0
"""

from functools import cache
from typing import Any, Final

from tidemill.http.openapi.operations import PATHS
from tidemill.http.openapi.responses import HEADERS
from tidemill.http.openapi.schemas import schemas

_SIGNATURE: Final = {
    # As API Gateway writes it when it exports an API:
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions-authtype.html
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "x-amazon-apigateway-authtype": "awsSigv4",
    "description": "AWS Signature Version 4 for the service `execute-api`, by a role or a user whom IAM lets call it.",
}
_TOKEN: Final = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "A token of the stage's issuer, meant for its audience.",
}


@cache
def description(*, tokens: bool) -> dict[str, Any]:
    """`tokens` where callers bring tokens; elsewhere they sign."""
    scheme, details = ("token", _TOKEN) if tokens else ("signature", _SIGNATURE)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidemill",
            "version": "1",
            "summary": "Durable background jobs.",
            "description": "A job belongs to the verified caller that submitted it. Other callers do not see it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{scheme: []}],
        "paths": PATHS,
        "components": {"schemas": schemas(), "headers": HEADERS, "securitySchemes": {scheme: details}},
    }
