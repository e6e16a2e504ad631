"""`python -m tests.simulation.conformance`: print the number of cases and the differences."""

from tests.simulation.conformance.summary import report

if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - output of a command
