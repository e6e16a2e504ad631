"""Sees that there is no point in trying again, though nothing broke."""

from pydantic import BaseModel

from tidemill import GiveUp, Run, job_type


class Invitation(BaseModel):
    """Whom to invite."""

    guest: str


@job_type("demo.give_up", payload=Invitation)
def give_up(payload: Invitation, run: Run) -> GiveUp:  # noqa: ARG001 - every handler is given its run
    return GiveUp(f"{payload.guest} has declined")
