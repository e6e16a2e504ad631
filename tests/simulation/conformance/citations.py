"""The source of the sentence of each case. Sentences of an API reference are looked up in the models of botocore."""

import html
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from botocore.loaders import Loader

Test = TypeVar("Test", bound=Callable[..., Any])

#: Sources that botocore ships: the names of its models.
DYNAMODB: Final = "dynamodb"
SQS: Final = "sqs"
LAMBDA: Final = "lambda"
STREAMS: Final = "dynamodbstreams"
S3: Final = "s3"
SCHEDULER: Final = "scheduler"
#: Sources that botocore does not ship.
GUIDE: Final = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
SQS_GUIDE: Final = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
LAMBDA_GUIDE: Final = "https://docs.aws.amazon.com/lambda/latest/dg/"
S3_GUIDE: Final = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
SCHEDULER_GUIDE: Final = "https://docs.aws.amazon.com/scheduler/latest/UserGuide/"
SDK_GUIDE: Final = "https://docs.aws.amazon.com/boto3/latest/guide/"

#: Backends.
SIMULATED: Final = "simulated"
MOTO: Final = "moto"
EMULATOR: Final = "emulator"
#: For the behaviour of botocore itself.
BOTOCORE: Final = "botocore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A sentence of AWS documentation, and the backends that run its test."""

    source: str
    sentence: str
    #: False if the words are ours: for an error message, or for a page that only shows an example.
    quoted: bool
    backends: tuple[str, ...]

    @property
    def shipped(self) -> bool:
        """Whether botocore ships the sentence."""
        return not self.source.startswith("https://")


#: Cases by name of the test.
CASES: Final[dict[str, Case]] = {}


def cites(
    source: str, sentence: str, *, quoted: bool = True, moto: bool = True, emulator: bool = True
) -> Callable[[Test], Test]:
    """Name the sentence that a test verifies. With `aws` it runs on all backends, with `sdk` on botocore too."""

    def mark(test: Test) -> Test:
        if test.__name__ in CASES:
            raise AssertionError(f"two cases have the name {test.__name__}; rename one")
        takes = inspect.signature(test).parameters
        others = {MOTO: moto and "aws" in takes, EMULATOR: emulator and "aws" in takes, BOTOCORE: "sdk" in takes}
        backends = (SIMULATED, *(name for name, runs in others.items() if runs))
        CASES[test.__name__] = Case(source=source, sentence=sentence, quoted=quoted, backends=backends)
        return test

    return mark


@cache
def reference(model: str) -> str:
    """The documentation in the botocore model of a service, as plain text."""
    found: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            for name, value in node.items():
                if name == "documentation" and isinstance(value, str):
                    found.append(plain(value))
                else:
                    walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(Loader().load_service_model(model, "service-2"))
    return "\n".join(found)


def plain(text: str) -> str:
    text = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\N{EN DASH}", "-")
    return re.sub(r" ([,.;:)])", r"\1", re.sub(r"\s+", " ", text))
