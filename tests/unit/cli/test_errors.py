"""Error messages: the chain of causes, and what to do."""

from itertools import pairwise

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
    SSOTokenLoadError,
)

from tidemill.aws.clients import translated
from tidemill.cli.errors import CommandError, explain
from tidemill.domain.errors import NewerSchemaError, StoreUnavailableError, TidemillError
from tidemill.operator.aws_error_advice import remedy


def _raised(*errors: Exception) -> Exception:
    """The last of these, each caused by the one before."""
    for cause, error in pairwise(errors):
        error.__cause__ = cause
    return errors[-1]


def test_causes_are_listed_with_the_root_cause_last() -> None:
    error = _raised(OSError("no route"), ValueError("bad answer"), TidemillError("cannot list the jobs"))
    assert explain(error).splitlines() == [
        "Error: cannot list the jobs",
        "  caused by ValueError: bad answer",
        "  caused by OSError: no route",
    ]


def test_an_implicit_context_is_a_cause_unless_it_is_suppressed() -> None:
    seen = TidemillError("seen")
    seen.__context__ = KeyError("k")
    assert "caused by KeyError" in explain(seen)
    seen.__suppress_context__ = True
    assert explain(seen) == "Error: seen"


def test_a_translated_error_is_printed_once() -> None:
    with pytest.raises(StoreUnavailableError) as raised, translated():
        raise NoCredentialsError
    assert explain(raised.value).splitlines()[0] == "Error: Unable to locate credentials"
    assert "caused by" not in explain(raised.value)


def test_the_remedy_of_the_outermost_error_is_printed() -> None:
    error = _raised(NoCredentialsError(), CommandError("cannot", remedy="Do this."))
    assert explain(error).splitlines()[-1] == "What to do: Do this."


def test_a_document_of_a_newer_version_asks_for_that_version_and_not_for_the_deployed_one() -> None:
    """After a rollback, the deployed version cannot read it either."""
    last = explain(NewerSchemaError("document", 4, 3)).splitlines()[-1]
    assert last.startswith("What to do: Use the command line of the version that wrote it.")
    assert "rolled back" in last


def test_an_unexpected_error_is_reported_as_a_bug() -> None:
    assert "--debug" in explain(KeyError("x"))
    for known in (TidemillError("x"), OSError("x"), BotoCoreError()):
        assert "--debug" not in explain(known)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NoCredentialsError(), "AWS_PROFILE"),
        (SSOTokenLoadError(error_msg="x"), "aws sso login"),
        (EndpointConnectionError(endpoint_url="x", error="x"), "AWS_ENDPOINT_URL"),
        (ReadTimeoutError(endpoint_url="x", error="x"), "AWS_ENDPOINT_URL"),
        (SSLError(endpoint_url="x", error=OSError("x")), "AWS_CA_BUNDLE"),
        (ClientError({"Error": {"Code": "AccessDeniedException", "Message": "m"}}, "Query"), "may not do this"),
        (ClientError({"Error": {"Code": "Unheard", "Message": "m"}}, "Query"), None),
        (ClientError({}, "Query"), None),
        (ValueError("x"), None),
    ],
)
def test_the_remedy_depends_on_the_kind_of_error(error: Exception, advice: str | None) -> None:
    found = remedy(error)
    assert (found is None) if advice is None else (found is not None and advice in found)
