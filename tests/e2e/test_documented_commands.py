"""Commands of the pages that need a management cluster, in one lab, and those of clusterctl."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.tools.catalogue import core_module
from tests.e2e.releases import NEWEST
from tests.website.blocks import blocks, inline_code
from tests.website.commands import check_help, commands, split
from tests.website.pages import ROOT, Shown, declared, pages
from tests.website.script import run

_START = """
capsmith new acme --no-input name=acme
cd acme
capsmith lab demo
export KUBECONFIG="$(capsmith lab kubeconfig)"
MACHINE=$(kubectl get acmemachines -o jsonpath='{.items[0].metadata.name}')
"""


def clusterctl(tools: Toolbox) -> Path:
    return tools.path(core_module(NEWEST), "clusterctl")


def commands_of(shown: Shown) -> str:
    """Return the commands of a block as a script, without those that its entry leaves out."""
    lines = shown.block.text.splitlines(keepends=True)
    if shown.block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    options = shown.entry["lab"]
    left_out = options.get("without", {})
    assert all(any(text in line for line in lines) for text in left_out)
    script = "".join(line for line in lines if not any(text in line for text in left_out))
    for text, replacement in options.get("replace", {}).items():
        assert text in script
        script = script.replace(text, replacement)
    return script


def test_commands_in_a_lab(tools: Toolbox, tmp_path: Path) -> None:
    scripts = [commands_of(shown) for shown in declared("lab")]
    assert len(scripts) > 5
    path = f'export PATH="{clusterctl(tools).parent}:$PATH"\n'

    done = run(path + _START + "".join(scripts), tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "cluster.cluster.x-k8s.io/classy condition met" in done.stdout
    assert re.search(r"AcmeCluster default/demo", done.stdout)


@pytest.mark.exhaustive
def test_the_example_for_ec2(tools: Toolbox, tmp_path: Path) -> None:
    """What its README says, with the environment of the tests in place of a new one."""
    (page,) = (page for page in pages() if page.source == "examples/ec2/README.md")
    text = "".join(block.text for block in blocks(page.text) if block.language == "sh")
    for line, replacement in {
        "python3 -m venv .venv\n": f"ln -s '{sys.prefix}' .venv\n",
        "make setup\n": "",
        "make test lint\n": "",  # tests/functional runs them, for minutes
        "5000": str(free_port()),
    }.items():
        assert line in text
        text = text.replace(line, replacement)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    folder = tmp_path / "build" / "ec2"

    done = run(text, tmp_path, PYTHONPATH=f"{folder / 'src'}:{folder / 'vendor'}")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "has 3 Machines Running" in done.stdout


def _of_clusterctl() -> Iterator[tuple[str, ...]]:
    for shown in (*declared("parse"), *declared("lab")):
        yield from (tuple(each) for each in commands(shown.block) if each[0] == "clusterctl")
    for page in pages():
        for code in inline_code(page.text):
            if code.startswith("clusterctl "):
                yield from (tuple(each) for each in split(code))


def test_commands_of_clusterctl_exist(tools: Toolbox) -> None:
    found = set(_of_clusterctl())
    assert len(found) > 20
    for _, *arguments in sorted(found):
        check_help(str(clusterctl(tools)), arguments)


def test_clusterctl_reads_its_configuration(tools: Toolbox, tmp_path: Path) -> None:
    shown = [each for each in declared("reader") if each.entry["reader"] == "clusterctl"]
    assert len(shown) > 5
    for each in shown:
        config = tmp_path / "clusterctl.yaml"
        config.write_text(each.block.text, encoding="utf-8")
        command = [str(clusterctl(tools)), "config", "repositories", "-o", "yaml"]
        done = subprocess.run([*command, "--config", str(config)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        listed = {
            (line["Name"], line["ProviderType"], f"{line['URL']}{line['File']}")
            for line in yaml.safe_load(done.stdout)
        }
        for entry in yaml.safe_load(each.block.text)["providers"]:
            assert (entry["name"], entry["type"], entry["url"]) in listed
