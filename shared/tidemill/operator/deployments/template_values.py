"""The values of a deployed template: what its references and functions become.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidemill.domain.errors import TidemillError
from tidemill.operator.drift.expected_resource import LatestStream

#: The rest of the ARN of a resource, after the account.
_ARNS: Final = {
    "AWS::DynamoDB::Table": "dynamodb:{region}:{account}:table/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::Lambda::Function": "lambda:{region}:{account}:function:{name}",
    "AWS::SQS::Queue": "sqs:{region}:{account}:{name}",
}


class UnknownValueError(TidemillError):
    """The template computes a value in a way that this code does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateValues:
    """`of` computes the value of any part of the template."""

    resources: Mapping[str, Any]
    #: By logical id.
    physical_ids: Mapping[str, str]
    #: The ARN of the stack.
    stack_id: str

    def of(self, value: Any) -> Any:
        """Raises `UnknownValueError`."""
        if isinstance(value, list):
            return [self.of(each) for each in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref" or name.startswith("Fn::"):
                return self._computed(name, argument)
        return {name: self.of(each) for name, each in value.items()}

    def _computed(self, function: str, argument: Any) -> Any:
        match function, argument:
            case "Ref", name:
                found: Any = self._reference(name)
            case "Fn::GetAtt", [logical_id, attribute]:
                found = self._attribute(logical_id, attribute)
            case "Fn::Join", [separator, parts]:
                found = separator.join(str(part) for part in self.of(parts))
            case "Fn::Split", [separator, text]:
                found = self.of(text).split(separator)
            case "Fn::Select", [index, parts]:
                found = self.of(parts)[int(index)]
            case _:
                raise UnknownValueError(f"the template has a value of {function}")
        return found

    def _reference(self, name: str) -> str:
        _, partition, _, region, account, _ = self.stack_id.split(":", 5)
        pseudo = {
            "AWS::AccountId": account,
            "AWS::Partition": partition,
            "AWS::Region": region,
            "AWS::StackId": self.stack_id,
        }
        found = pseudo.get(name) or self.physical_ids.get(name)
        if not found:
            raise UnknownValueError(f"the template refers to {name}, which the stack does not list")
        return found

    def _attribute(self, logical_id: str, attribute: str) -> Any:
        name = self._reference(logical_id).rpartition("/")[2]
        type_ = self.resources.get(logical_id, {}).get("Type", "")
        if attribute == "StreamArn":
            return LatestStream(name)
        if attribute != "Arn" or type_ not in _ARNS:
            raise UnknownValueError(f"the template has the attribute {attribute} of a {type_}")
        _, partition, _, region, account, _ = self.stack_id.split(":", 5)
        return f"arn:{partition}:" + _ARNS[type_].format(region=region, account=account, name=name)
