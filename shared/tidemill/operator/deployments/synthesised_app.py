"""The app as `cdk synth` left it in a folder, and what a deployment of it would replace."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidemill.domain.errors import TidemillError
from tidemill.names import Env

Template = Mapping[str, Any]

#: The resources that hold jobs or messages, and those of their properties whose change replaces them. The pages are
#: aws-resource-dynamodb-table.html, aws-resource-dynamodb-globaltable.html, aws-resource-sqs-queue.html and
#: aws-resource-s3-bucket.html below https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference
_REPLACED_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS::DynamoDB::Table": ("TableName", "KeySchema"),
    "AWS::DynamoDB::GlobalTable": ("TableName", "KeySchema"),
    "AWS::SQS::Queue": ("QueueName", "FifoQueue"),
    "AWS::S3::Bucket": ("BucketName",),
}


class AssemblyError(TidemillError):
    """The folder holds no synthesised app, or one without job types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisedApp:
    """`templates` is by the name of the stack, and `root` is the folder with the source of the app."""

    root: Path
    templates: Mapping[str, Template]


def read(folder: Path) -> SynthesisedApp:
    """Raises `AssemblyError`. The format is that of https://docs.aws.amazon.com/cdk/v2/guide/deploy.html."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        stacks = {
            artifact["properties"].get("stackName", name): artifact["properties"]["templateFile"]
            for name, artifact in manifest["artifacts"].items()
            if artifact["type"] == "aws:cloudformation:stack"
        }
        templates = {name: json.loads((folder / file).read_text(encoding="utf-8")) for name, file in stacks.items()}
    except (OSError, ValueError, KeyError) as error:
        raise AssemblyError(f"{folder} holds no synthesised app") from error
    return SynthesisedApp(root=folder.resolve().parent, templates=templates)


def job_packages(template: Template) -> list[str]:
    """The packages whose job types the functions of this stack import. Raises `AssemblyError`."""
    for resource in _resources(template).values():
        variables = resource.get("Properties", {}).get("Environment", {}).get("Variables", {})
        if packages := variables.get(Env.JOB_PACKAGES):
            return str(packages).split(",")
    raise AssemblyError(f"no function of the synthesised stack has the variable {Env.JOB_PACKAGES}")


def replaced(deployed: Template, synthesised: Template) -> Iterator[str]:
    """Each stateful resource that a deployment would remove or replace by an empty one, with the reason."""
    following = _resources(synthesised)
    for logical_id, resource in sorted(_resources(deployed).items()):
        kind = resource.get("Type", "")
        if kind not in _REPLACED_WITH:
            continue
        new = following.get(logical_id)
        if new is None or new.get("Type") != kind:
            yield f"{kind} {logical_id} is no longer in the template"
            continue
        before, after = resource.get("Properties", {}), new.get("Properties", {})
        changed = [name for name in _REPLACED_WITH[kind] if before.get(name) != after.get(name)]
        if changed:
            yield f"{kind} {logical_id} gets another {' and '.join(changed)}"


def needed_exports(deployed: Mapping[str, Template], synthesised: Mapping[str, Template]) -> Iterator[tuple[str, str]]:
    """Each stack that a deployment would take an export from, and the stack whose deployed template imports it.

    CloudFormation refuses that: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html
    """
    for exporter, template in sorted(deployed.items()):
        gone = _exports(template) - _exports(synthesised.get(exporter, template))
        for importer, other in sorted(deployed.items()):
            if gone & set(_imports(other)):
                yield exporter, importer


def _exports(template: Template) -> set[str]:
    return {str(output["Export"]["Name"]) for output in template.get("Outputs", {}).values() if "Export" in output}


def _imports(value: Any) -> Iterator[str]:
    """The names of the exports that the template, or a part of one, imports. CDK writes them as text."""
    match value:
        case {"Fn::ImportValue": str(name)}:
            yield name
        case Mapping():
            for each in value.values():
                yield from _imports(each)
        case [*parts]:
            for each in parts:
                yield from _imports(each)


def _resources(template: Template) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = template.get("Resources", {})
    return found
