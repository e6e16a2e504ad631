"""Computes a checksum. Its runs are cheap and have no effect, so its jobs are claimed and settled together."""

import hashlib

from pydantic import BaseModel

from tidemill import Run, job_type


class Text(BaseModel):
    """The text to sum up."""

    text: str


@job_type("demo.checksum", payload=Text, commit="grouped")
def checksum(payload: Text, run: Run) -> str:  # noqa: ARG001 - every handler is given its run
    return hashlib.sha256(payload.text.encode()).hexdigest()
