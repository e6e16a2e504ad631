"""Where a case has its sentence from. Those of an API reference are looked up in the models that botocore ships."""

import html
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from botocore.loaders import Loader

Test = TypeVar("Test", bound=Callable[..., Any])

#: Sources whose sentences botocore ships: the name of the model.
DYNAMODB: Final = "dynamodb"
SQS: Final = "sqs"
LAMBDA: Final = "lambda"
STREAMS: Final = "dynamodbstreams"
#: Sources that it does not.
GUIDE: Final = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
SQS_GUIDE: Final = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
LAMBDA_GUIDE: Final = "https://docs.aws.amazon.com/lambda/latest/dg/"

#: (source, sentence) of each case, by the name of its test.
CITED: Final[dict[str, tuple[str, str]]] = {}
#: Cases that moto answers otherwise, and how.
MOTO_DIFFERS: Final[dict[str, str]] = {}
SIMULATED_ONLY: Final[set[str]] = set()
#: Cases whose words are ours: an error message, or what a page shows by an example only.
OWN_WORDS: Final[set[str]] = set()


def cites(
    source: str, sentence: str, *, quoted: bool = True, moto: bool = True, moto_differs: str = ""
) -> Callable[[Test], Test]:
    """The sentence that a test holds the simulator to. Without `moto`, it is about time, faults or Lambda."""

    def mark(test: Test) -> Test:
        name = test.__name__
        if name in CITED:
            raise AssertionError(f"two cases are called {name}")
        CITED[name] = (source, sentence)
        if moto_differs:
            MOTO_DIFFERS[name] = moto_differs
        if not quoted:
            OWN_WORDS.add(name)
        if not moto:
            SIMULATED_ONLY.add(name)
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
