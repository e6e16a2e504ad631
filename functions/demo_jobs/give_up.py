"""Gives up without an exception, because another attempt cannot succeed."""

from pydantic import BaseModel

from tidemill import GiveUp, Run, job_type


class Invitation(BaseModel):
    """The guest to invite."""

    guest: str


@job_type("demo.give_up", payload=Invitation)
def give_up(payload: Invitation, run: Run) -> GiveUp:  # noqa: ARG001 - every handler is given its run
    return GiveUp(f"{payload.guest} has declined")
