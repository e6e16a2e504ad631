"""Points the aliases of functions to other versions: all of them, or none."""

from collections.abc import Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from tidemill.aws.clients import AWS_ERRORS, translated
from tidemill.domain.errors import StoreUnavailableError, TidemillError
from tidemill.names import LIVE_ALIAS
from tidemill.operator.deployments.rollback_plan import Move

#: https://docs.aws.amazon.com/lambda/latest/api/API_UpdateAlias.html
_CHANGED: Final = "PreconditionFailedException"


class AliasesChangedError(TidemillError):
    """Another command, or a deployment, changed an alias since it was read."""


class NotMovedBackError(TidemillError):
    """Some aliases were moved, and could not be moved back after an error."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"these functions run another version, and could not be moved back: {', '.join(keys)}")


def move(client: Any, moves: Sequence[Move]) -> None:
    """Make one call for each alias. After an error or an interruption, move back what was moved, and raise.

    Raises `AliasesChangedError`, `NotMovedBackError`, and what the AWS calls raise. `client` is that of Lambda.
    """
    begun: list[Move] = []
    try:
        for each in moves:
            begun.append(each)
            _point(client, each.function.name, each.to.number, revision=each.function.revision)
    except BaseException as error:
        if left := [each.function.key for each in reversed(begun) if not _moved_back(client, each)]:
            raise NotMovedBackError(left) from error
        raise


def _point(client: Any, name: str, number: int, *, revision: str) -> None:
    try:
        with translated():
            client.update_alias(
                FunctionName=name,
                Name=LIVE_ALIAS,
                FunctionVersion=str(number),
                # Without an end of its weights, the alias would go on to send calls to the other version.
                RoutingConfig={"AdditionalVersionWeights": {}},
                # A deployment or another operator moved the alias since it was read.
                RevisionId=revision,
            )
    except (ClientError, StoreUnavailableError) as error:
        # The call succeeded and its answer was lost, so the SDK's retry met the revision that the call had made.
        if _points_to(_alias(client, name), number):
            return
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == _CHANGED:
            raise AliasesChangedError(f"the alias {LIVE_ALIAS} of {name} changed meanwhile") from error
        raise


def _moved_back(client: Any, move: Move) -> bool:
    """Whether the alias points to where it pointed, or to what another command has chosen since."""
    try:
        alias = _alias(client, move.function.name)
        if _points_to(alias, move.to.number):
            _point(client, move.function.name, move.function.live, revision=alias["RevisionId"])
    except (TidemillError, *AWS_ERRORS):
        return False
    return True


def _alias(client: Any, name: str) -> Any:
    with translated():
        return client.get_alias(FunctionName=name, Name=LIVE_ALIAS)


def _points_to(alias: Any, number: int) -> bool:
    weights = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights")
    return bool(alias["FunctionVersion"] == str(number) and not weights)
