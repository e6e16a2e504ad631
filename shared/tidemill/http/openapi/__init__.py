"""The OpenAPI 3.1 description of the HTTP API, generated from the request models. A test compares it with the handlers.

https://spec.openapis.org/oas/v3.1.0
"""

from functools import cache
from typing import Any, Final

from tidemill.http.openapi.operations import paths
from tidemill.http.openapi.responses import HEADERS
from tidemill.http.openapi.schemas import schemas

_SIGNATURE: Final = {
    # API Gateway writes it so when it exports an API:
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions-authtype.html
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "x-amazon-apigateway-authtype": "awsSigv4",
    "description": "AWS Signature Version 4 for the service `execute-api`. IAM must allow the caller to invoke it.",
}
_TOKEN: Final = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "A token from the stage's issuer, for the stage's audience.",
}


@cache
def description(*, tokens: bool) -> dict[str, Any]:
    """With `tokens`, callers send a JWT; without, they sign."""
    scheme, details = ("token", _TOKEN) if tokens else ("signature", _SIGNATURE)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidemill",
            "version": "1",
            "summary": "Durable background jobs.",
            "description": "A job belongs to the verified caller that submitted it. Other callers cannot see it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{scheme: []}],
        "paths": paths(),
        "components": {"schemas": schemas(), "headers": HEADERS, "securitySchemes": {scheme: details}},
    }
