"""Gives up without an exception, because another attempt cannot succeed."""

from pydantic import BaseModel

from tidemill import GiveUp, Run, job_type


class Invitation(BaseModel):
    """The guest to invite."""

    guest: str
    #: The guest accepts once the job has been redriven.
    reconsiders: bool = False


@job_type("demo.give_up", payload=Invitation)
def give_up(payload: Invitation, run: Run) -> GiveUp | dict[str, str]:
    if payload.reconsiders and run.resumed_from:
        return {"accepted": payload.guest}
    if payload.reconsiders:
        run.checkpoint("asked")
    return GiveUp(f"{payload.guest} has declined")
