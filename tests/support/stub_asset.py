"""A folder that stands for the asset of an app, with the manifest of its job types."""

import sysconfig
from collections.abc import Sequence
from pathlib import Path

from stacks.composition import ROOT
from tidemill.cdk.functions import job_manifest


def stub_asset(folder: Path, packages: Sequence[str] = ("functions.jobs",), *, root: Path = ROOT) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "empty.py").touch()
    site_packages = Path(sysconfig.get_path("purelib"))
    job_manifest.write(packages, path=[root, ROOT / "shared", site_packages], into=folder)
    return str(folder)
