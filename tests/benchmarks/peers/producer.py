"""`python -m tests.benchmarks.peers.producer MODULE`: submits jobs to one system, as its users do.

MODULE has a function `submitter` that returns a `load.Submit`; threads share it. Reads one plan a line from the
standard input, as JSON, and answers each with one line. Ends with its standard input.
"""

import importlib
import json
import sys
import time

from tests.benchmarks.peers.load import Due, generate


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    submit = importlib.import_module(sys.argv[1]).submitter()
    for line in sys.stdin:
        plan = [Due(*each) for each in json.loads(line)]
        before = time.process_time()
        load = generate(plan, submit)
        answer = {"accepted": load.accepted, "error": load.error, "cpu": time.process_time() - before}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
