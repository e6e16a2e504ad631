"""Submits jobs to Tidemill with its Python client, which writes to the table."""

import os

import boto3
from botocore.config import Config

from tests.benchmarks.peers.load import THREADS, Submit
from tests.benchmarks.peers.system import WORK_MILLISECONDS
from tests.benchmarks.peers.work import JOURNAL
from tidemill.client import Submission, Tidemill


def submitter() -> Submit:
    client = boto3.client("dynamodb", config=Config(max_pool_connections=THREADS))
    packages = ["tests.benchmarks.peers.tidemill_jobs"]
    tidemill = Tidemill.at(os.environ["BENCH_TABLE"], tenant="bench", job_packages=packages, client=client)

    def submit(number: int) -> None:
        payload = {"number": number, "milliseconds": WORK_MILLISECONDS, "journal": os.environ[JOURNAL]}
        tidemill.submit(Submission(type="bench.work", payload=payload))

    return submit
