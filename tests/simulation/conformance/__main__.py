"""`python -m tests.simulation.conformance`: the cases, counted."""

from tests.simulation.conformance.summary import report

if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - for a person
