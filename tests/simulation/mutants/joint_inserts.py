"""Inserts of several jobs in one call."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

JOINT_INSERTS: Final = (
    Mutant(
        "a statement that failed counts as an insert",
        modules.JOINT_INSERTS,
        "JointInserts.__call__",
        "[error is None for error in errors]",
        "[True for _ in errors]",
    ),
    Mutant(
        "a call of several that failed counts as inserts",
        modules.JOINT_INSERTS,
        "JointInserts.__call__",
        "[False] * len(jobs)",
        "[True] * len(jobs)",
    ),
    Mutant(
        "an existing job counts as inserted with others",
        modules.JOINT_INSERTS,
        "JointInserts.__call__",
        "error is None",
        "error is None or error['Code'] == 'DuplicateItem'",
    ),
)
