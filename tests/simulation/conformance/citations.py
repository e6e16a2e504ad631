"""Where a case has its sentence from. Those of an API reference are looked up in the models that botocore ships."""

import html
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from botocore.loaders import Loader

Test = TypeVar("Test", bound=Callable[..., Any])

#: Sources whose sentences botocore ships: the name of the model.
DYNAMODB: Final = "dynamodb"
SQS: Final = "sqs"
LAMBDA: Final = "lambda"
STREAMS: Final = "dynamodbstreams"
S3: Final = "s3"
SCHEDULER: Final = "scheduler"
#: Sources that it does not.
GUIDE: Final = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
SQS_GUIDE: Final = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
LAMBDA_GUIDE: Final = "https://docs.aws.amazon.com/lambda/latest/dg/"
S3_GUIDE: Final = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
SCHEDULER_GUIDE: Final = "https://docs.aws.amazon.com/scheduler/latest/UserGuide/"
SDK_GUIDE: Final = "https://docs.aws.amazon.com/boto3/latest/guide/"

#: What a case may run on.
SIMULATED: Final = "simulated"
MOTO: Final = "moto"
EMULATOR: Final = "emulator"
#: For what is botocore's own.
BOTOCORE: Final = "botocore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A sentence of AWS, and what is held to it."""

    source: str
    sentence: str
    #: Not if the words are ours: an error message, or what a page shows by an example only.
    quoted: bool
    backends: tuple[str, ...]

    @property
    def shipped(self) -> bool:
        """Whether botocore ships the sentence."""
        return not self.source.startswith("https://")


#: By the name of the test.
CASES: Final[dict[str, Case]] = {}


def cites(
    source: str, sentence: str, *, quoted: bool = True, moto: bool = True, emulator: bool = True
) -> Callable[[Test], Test]:
    """The sentence that a test holds the simulator to; the others too if it takes `aws`, botocore if it takes `sdk`."""

    def mark(test: Test) -> Test:
        if test.__name__ in CASES:
            raise AssertionError(f"two cases are called {test.__name__}")
        takes = inspect.signature(test).parameters
        others = {MOTO: moto and "aws" in takes, EMULATOR: emulator and "aws" in takes, BOTOCORE: "sdk" in takes}
        backends = (SIMULATED, *(name for name, runs in others.items() if runs))
        CASES[test.__name__] = Case(source=source, sentence=sentence, quoted=quoted, backends=backends)
        return test

    return mark


@cache
def reference(model: str) -> str:
    """All that botocore's model of a service says, as plain text."""
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
