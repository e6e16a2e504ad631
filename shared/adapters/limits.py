"""The limits of each key in the jobs table."""

from datetime import datetime

from shared.application.ports import Place


class DynamoLimits:
    """`Limits` over one table."""

    def enter(self, place: Place, *, now: datetime) -> datetime | None:
        raise NotImplementedError

    def leave(self, place: Place) -> None:
        raise NotImplementedError
