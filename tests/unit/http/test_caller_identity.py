"""Whose request it is, by the authoriser that the stage has."""

from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from tidemill.http import ProblemError, tenant
from tidemill.names import Env

ISSUER = "https://login.example/"
SIGNED = {"iam": {"accountId": "111122223333", "userId": "AROAEXAMPLE:session"}}


def _tenant(authorizer: Any) -> str:
    return tenant(APIGatewayProxyEventV2({"requestContext": {"authorizer": authorizer}}))


def _bearer(**claims: Any) -> Any:
    return {"jwt": {"claims": claims, "scopes": None}}


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.JWT, '{"issuer": "https://login.example/", "audience": ["jobs"]}')


@pytest.mark.usefixtures("tokens")
def test_the_bearer_of_a_token_is_issuer_and_subject() -> None:
    assert _tenant(_bearer(iss=ISSUER, sub="auth0|7", email="x")) == "https://login.example/|auth0|7"


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {},
        SIGNED,
        {"jwt": None},
        {"jwt": {}},
        _bearer(),
        _bearer(iss=ISSUER),
        _bearer(sub="7"),
        _bearer(iss="", sub="7"),
        _bearer(iss=ISSUER, sub=""),
        _bearer(iss=ISSUER, sub=7),
        _bearer(iss=[ISSUER], sub="7"),
        _bearer(iss="https://login.example/|auth0", sub="7"),
        _bearer(iss="!group#", sub="7"),
        _bearer(iss=ISSUER, sub="white space"),
        _bearer(iss=ISSUER, sub="ünicode"),
        _bearer(iss=ISSUER, sub="x" * (512 - len(ISSUER))),
    ],
    ids=str,
)
def test_a_token_without_an_unambiguous_subject_is_refused(authorizer: Any) -> None:
    with pytest.raises(ProblemError) as refused:
        _tenant(authorizer)

    assert (refused.value.status, refused.value.code) == (403, "no-identity")


@pytest.mark.usefixtures("tokens")
def test_a_tenant_is_as_long_as_its_keys_allow() -> None:
    assert len(_tenant(_bearer(iss=ISSUER, sub="x" * (511 - len(ISSUER))))) == 512


@pytest.mark.parametrize("setting", [None, ""])
def test_a_token_is_nobodys_identity_where_callers_sign(setting: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if setting is None:
        monkeypatch.delenv(Env.JWT, raising=False)
    else:
        monkeypatch.setenv(Env.JWT, setting)

    assert _tenant(SIGNED) == "111122223333:AROAEXAMPLE"
    with pytest.raises(ProblemError):
        _tenant(_bearer(iss=ISSUER, sub="7"))
