"""Documents that only the next version of the code can read."""

from tests.simulation.checks.violation import Item, number_of
from tests.simulation.world.code_versions import PRESENT


def is_newer(item: Item) -> bool:
    """After a rollback, only the newer version can read it, once it is deployed again."""
    return number_of(item, "schema") > PRESENT.document_schema
