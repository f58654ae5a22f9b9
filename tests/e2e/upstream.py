"""Run Cluster API's own end-to-end specs with an example, and print how long each has taken.

    python -m tests.e2e.upstream everything 'Quick start' 'Scaling a MachineDeployment'

The repository of the example is generated with the specs, whether or not its description requires
them, and those run whose titles match; all, if none are named.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from capsmith.commands.generate import generate
from tests.checkout import ROOT, environment
from tests.e2e.harness.moto import MotoCloud
from tests.repositories import add_authored_code

IMAGES = ROOT / "examples" / "ec2" / "tests" / "amis.json"
REGION = "us-east-1"
_NANOSECONDS = 1e9


@dataclass(frozen=True)
class SpecResult:
    """What ginkgo reports of one spec."""

    title: str
    state: str
    """`passed`, or how it has failed."""
    seconds: float
    message: str
    """The reason of a failure; empty if there is none."""

    def describe(self) -> str:
        """Return a line of a report."""
        return f"{self.title}: {self.state} in {self.seconds:.0f} s {self.message}".rstrip()


def run_specs(example: str, folder: Path, titles: Sequence[str]) -> list[SpecResult]:
    """Generate an example below an empty folder, and run the specs whose titles match.

    Raises AssertionError if no report is written, as when the lab does not start.
    """
    repository = _generate(example, folder)
    report = folder / "report.json"
    with _open_cloud(example, folder) as variables:
        output = _make(repository, report, titles, variables)
    assert report.exists(), output
    return list(read_results(report))


def _generate(example: str, folder: Path) -> Path:
    source, repository = ROOT / "examples" / example, folder / example
    described = yaml.safe_load((source / "provider.yaml").read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    if (source / "blueprints").is_dir():
        shutil.copytree(source / "blueprints", folder / "blueprints")
    description = folder / "provider.yaml"
    description.write_text(yaml.safe_dump({**described, "e2e": True}, sort_keys=False))
    report = generate(description, repository)
    assert report.exit_code == 0, report.findings
    add_authored_code(source, repository)
    return repository


@contextmanager
def _open_cloud(example: str, folder: Path) -> Iterator[dict[str, str]]:
    """Provide the variables by which a manager finds the example's cloud, while that runs."""
    if example != "ec2":
        yield {}
        return
    cloud = MotoCloud(folder / "cloud", IMAGES, REGION)
    cloud.start()
    try:
        yield {"AWS_ENDPOINT_URL": cloud.url}
    finally:
        cloud.process.stop()


def _make(
    repository: Path, report: Path, titles: Sequence[str], variables: Mapping[str, str]
) -> str:
    """Run `make e2e`, and return what it prints."""
    arguments = [f"--ginkgo.json-report={report}", *(f"--ginkgo.focus='{each}'" for each in titles)]
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = (f"PYTHON={sys.executable}", f"ARGS={' '.join(arguments)}")
    log = report.parent / "output.log"
    with log.open("w", encoding="utf-8") as output:
        subprocess.run(
            ["make", "e2e", *settings],
            cwd=repository,
            env=environment(PATH=paths, XDG_STATE_HOME=str(report.parent / "state"), **variables),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return log.read_text(encoding="utf-8", errors="replace")


def read_results(report: Path) -> Iterator[SpecResult]:
    """Yield the results in ginkgo's report of specs that were not skipped."""
    for suite in json.loads(report.read_text(encoding="utf-8")):
        for each in suite["SpecReports"] or ():
            if each["State"] == "skipped":
                continue
            yield SpecResult(
                title=" ".join(each["ContainerHierarchyTexts"] or [each["LeafNodeType"]]),
                state=each["State"],
                seconds=each["RunTime"] / _NANOSECONDS,
                message=(each.get("Failure") or {}).get("Message", ""),
            )


def _print_results(example: str, titles: Sequence[str]) -> None:
    folder = Path(tempfile.mkdtemp(prefix=f"upstream-{example}-"))
    print(folder)
    for each in run_specs(example, folder, titles):
        print(each.describe())


if __name__ == "__main__":
    _print_results(sys.argv[1], sys.argv[2:])
