"""The rows of an import, and the job that follows once all of them are stored: the callback of their batch."""

from pydantic import BaseModel

from tidemill import Run, job_type


class Row(BaseModel):
    number: int


class Imported(BaseModel):
    name: str


@job_type("demo.row", payload=Row)
def demo_row(row: Row, run: Run) -> dict[str, int]:  # noqa: ARG001 - every handler is given its run
    return {"stored": row.number}


@job_type("demo.imported", payload=Imported)
def demo_imported(imported: Imported, run: Run) -> dict[str, str]:  # noqa: ARG001 - every handler is given its run
    return {"published": imported.name}
