"""Write the records anew: `python -m tests.simulation.stories [NAME …]`."""

import sys

from tests.simulation.stories import RECORDS
from tests.simulation.stories.tell import stories, told


def main() -> None:
    for name in sys.argv[1:] or stories():
        (RECORDS / f"{name}.txt").write_text(told(name), encoding="utf-8")


if __name__ == "__main__":
    main()
