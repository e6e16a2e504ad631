"""The number of cases by service and kind of sentence, and the differences of each backend."""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tests.simulation import conformance
from tests.simulation.conformance.citations import BOTOCORE, CASES, EMULATOR, MOTO, SIMULATED, Case
from tests.simulation.conformance.differences import DIFFERENCES

#: Service by beginning of the source.
_SERVICES: Final = {
    "dynamodbstreams": "DynamoDB Streams",
    "dynamodb": "DynamoDB",
    "sqs": "SQS",
    "lambda": "Lambda",
    "s3": "S3",
    "scheduler": "EventBridge Scheduler",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams": "DynamoDB Streams",
    "https://docs.aws.amazon.com/amazondynamodb/": "DynamoDB",
    "https://docs.aws.amazon.com/AWSSimpleQueueService/": "SQS",
    "https://docs.aws.amazon.com/lambda/": "Lambda",
    "https://docs.aws.amazon.com/AmazonS3/": "S3",
    "https://docs.aws.amazon.com/scheduler/": "EventBridge Scheduler",
    "https://docs.aws.amazon.com/boto3/": "SDK",
}
_KINDS: Final = ("looked up in botocore's models", "quoted from a guide", "in our own words")


def cases() -> Mapping[str, Case]:
    """All cases by name of the test."""
    for module in pkgutil.iter_modules(conformance.__path__, prefix=f"{conformance.__name__}."):
        if module.name.rpartition(".")[2].startswith("test_") and not module.name.endswith("test_citations"):
            importlib.import_module(module.name)
    return CASES


def report() -> Iterator[str]:
    """Yield the lines that the command prints."""
    found = cases()
    services = Counter(_service(case) for case in found.values())
    yield f"{len(found)} conformance cases: " + ", ".join(
        f"{backend} {sum(backend in case.backends for case in found.values())}{_differing(backend)}"
        for backend in (SIMULATED, MOTO, EMULATOR, BOTOCORE)
    )
    yield ""
    yield from _row("service", "cases", *_KINDS)
    yield from _row(*["---"] * (2 + len(_KINDS)))
    for service, count in services.most_common():
        kinds = Counter(_kind(case) for case in found.values() if _service(case) == service)
        yield from _row(service, str(count), *(str(kinds[kind]) for kind in _KINDS))
    for backend, differing in DIFFERENCES.items():
        yield ""
        yield from _row("case", backend)
        yield from _row("---", "---")
        for name, how in differing.items():
            yield from _row(name.removeprefix("test_").replace("_", " "), how)


def _differing(backend: str) -> str:
    return f" ({len(DIFFERENCES[backend])} differ)" if DIFFERENCES.get(backend) else ""


def _row(*cells: str) -> Iterable[str]:
    yield f"| {' | '.join(cells)} |"


def _service(case: Case) -> str:
    return next(service for start, service in _SERVICES.items() if case.source.startswith(start))


def _kind(case: Case) -> str:
    looked_up, quoted, own = _KINDS
    return looked_up if case.shipped else quoted if case.quoted else own
