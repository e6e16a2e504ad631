"""The chain of causes, and what to do."""

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
from tidemill.cli.errors import ExplainedError, explain
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.operator.aws_error_advice import remedy


def _raised(*errors: Exception) -> Exception:
    """The last of these, each caused by the one before."""
    for cause, error in pairwise(errors):
        error.__cause__ = cause
    return errors[-1]


def test_causes_follow_innermost_last() -> None:
    error = _raised(OSError("no route"), ValueError("bad answer"), TidemillError("cannot list the jobs"))
    assert explain(error).splitlines() == [
        "Error: cannot list the jobs",
        "  caused by ValueError: bad answer",
        "  caused by OSError: no route",
    ]


def test_what_was_being_handled_is_a_cause_unless_it_was_hidden() -> None:
    seen = TidemillError("seen")
    seen.__context__ = KeyError("k")
    assert "caused by KeyError" in explain(seen)
    seen.__suppress_context__ = True
    assert explain(seen) == "Error: seen"


def test_a_translated_error_is_not_said_twice() -> None:
    with pytest.raises(StoreUnavailableError) as raised, translated():
        raise NoCredentialsError
    assert explain(raised.value).splitlines()[0] == "Error: Unable to locate credentials"
    assert "caused by" not in explain(raised.value)


def test_the_outermost_advice_is_given() -> None:
    error = _raised(NoCredentialsError(), ExplainedError("cannot", remedy="Do this."))
    assert explain(error).splitlines()[-1] == "What to do: Do this."


def test_an_error_of_no_known_kind_is_taken_for_a_fault_of_ours() -> None:
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
def test_what_to_do_depends_on_the_kind_of_the_error(error: Exception, advice: str | None) -> None:
    found = remedy(error)
    assert (found is None) if advice is None else (found is not None and advice in found)
