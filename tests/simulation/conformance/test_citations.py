"""Every sentence that botocore ships is found there, word for word."""

import importlib
import pkgutil

import pytest

from tests.simulation import conformance
from tests.simulation.conformance.cited import CITED, DYNAMODB, LAMBDA, OWN_WORDS, SQS, STREAMS, plain, reference

for module in pkgutil.iter_modules(conformance.__path__, prefix=f"{conformance.__name__}."):
    if module.name.rpartition(".")[2].startswith("test_") and module.name != __name__:
        importlib.import_module(module.name)

REFERENCES = {DYNAMODB, SQS, LAMBDA, STREAMS}


@pytest.mark.parametrize("name", [name for name, (source, _) in CITED.items() if source in REFERENCES])
def test_the_sentence_stands_in_the_reference(name: str) -> None:
    source, sentence = CITED[name]
    assert plain(sentence) in reference(source)


def test_what_botocore_ships_is_quoted() -> None:
    assert [name for name in OWN_WORDS if CITED[name][0] in REFERENCES] == []


def test_there_are_enough_cases() -> None:
    assert len(CITED) >= 80
