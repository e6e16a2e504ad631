"""`python -m demo --log access.log.gz --limit 1000` plays the demo."""

import argparse
import sys
from pathlib import Path

import demo
from tidemill.local.terminal_command import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo")
    parser.add_argument(
        "--log", type=Path, help="an access log in combined format, plain or gzip; the default is a sample"
    )
    parser.add_argument("--limit", type=_count, help="number of lines to read; the default is all")
    arguments = parser.parse_args()
    return run(lambda _: demo.main(log=arguments.log, limit=arguments.limit))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"invalid limit {text!r}: use a number of lines, such as 1000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
