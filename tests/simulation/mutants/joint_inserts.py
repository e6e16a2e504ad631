"""Inserts of several jobs in one call."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

JOINT_INSERTS: Final = (
    Mutant(
        "a statement that failed counts as an insert",
        modules.JOINT_INSERTS,
        "        return [error is None for error in errors]\n",
        "        return [True for _ in errors]\n",
    ),
    Mutant(
        "a call of several that failed counts as inserts",
        modules.JOINT_INSERTS,
        "            return [False] * len(jobs)\n",
        "            return [True] * len(jobs)\n",
    ),
    Mutant(
        "an existing job counts as inserted with others",
        modules.JOINT_INSERTS,
        "        return [error is None for error in errors]\n",
        '        return [error is None or error["Code"] == "DuplicateItem" for error in errors]\n',
    ),
)
