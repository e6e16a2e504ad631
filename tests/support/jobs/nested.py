"""A type whose model refuses any number of values, at any depth."""

from pydantic import BaseModel

from tidemill import Run, job_type


class Nested(BaseModel):
    numbers: list[int] = []
    inner: dict[str, "Nested"] = {}


@job_type("test.nested", payload=Nested)
def nested(_payload: Nested, _run: Run) -> None:
    pass
