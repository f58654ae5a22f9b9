"""Cluster API's own end-to-end specs in a generated repository: all compile, and one runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.tools.catalogue import core_module, default_core
from capsmith.clusters.processes.tools.go import find_go
from tests.checkout import environment
from tests.e2e.tools.gofmt import find_gofmt
from tests.e2e.upstream import run_specs
from tests.golden.cases import cases, generated

_OTHER_PROVIDERS = ("everything", "ec2")
_TITLES = ("Quick start", "Scaling a MachineDeployment")
_OWN = 'metadata:\n  labels: {own: ""}\n'
_MANIFEST = "kind: Plugin\nrange: $POD_CIDR ${POD_CIDR} $$\n"
_VARIABLES = {
    "CLUSTER_NAME": "a",
    "NAMESPACE": "default",
    "KUBERNETES_VERSION": "v1.36.0",
    "CONTROL_PLANE_MACHINE_COUNT": "1",
    "WORKER_MACHINE_COUNT": "1",
    "TOKEN": "t",
    "SERVER": "s",
}
_ADD_FLAVORS = """package e2e

import (
	"os"
	"testing"
)

func TestAddFlavors(t *testing.T) {
	var err error
	if settings, err = readSettings("settings.yaml"); err == nil {
		_, err = addFlavors(os.Getenv("CONFIG"), os.Getenv("TARGET"), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}
"""
_CASE = next(case for case in cases() if case.name == "pools")


def _run(folder: Path, *command: str, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_generated_specs_are_formatted_and_vetted(tools: Toolbox, tmp_path: Path) -> None:
    """gofmt changes no generated file, and go vet, which compiles all of them, finds nothing."""
    generated(_CASE, tmp_path)
    module = tmp_path / "e2e"

    assert _run(module, str(find_gofmt(module)), "-l", ".") == ""
    _run(module, find_go().command, "vet", "-tags", "e2e", ".")


def test_settings_choose_templates_and_a_network(tools: Toolbox, tmp_path: Path) -> None:
    """Clusters are made from the flavor of the settings, and get the manifest unchanged."""
    generated(_CASE, tmp_path)
    release, module = tmp_path / "infrastructure-tidal" / "v0.1.0", tmp_path / "e2e"
    shutil.copytree(tmp_path / "templates", release)
    flavor = (release / "cluster-template.yaml").read_text(encoding="utf-8")
    (release / "cluster-template-own.yaml").write_text(flavor.replace("metadata:\n", _OWN, 1))
    (release / "infrastructure-components.yaml").touch()
    (tmp_path / "plugin.yaml").write_text(_MANIFEST)
    settings = yaml.safe_load((module / "settings.yaml").read_text(encoding="utf-8"))
    settings |= {"templates": {"default": "own"}, "network": str(tmp_path / "plugin.yaml")}
    (module / "settings.yaml").write_text(yaml.safe_dump(settings))
    provider = {
        "name": "tidal",
        "type": "InfrastructureProvider",
        "url": (release / "infrastructure-components.yaml").as_uri(),
    }
    (tmp_path / "clusterctl.yaml").write_text(yaml.safe_dump({"providers": [provider]}))
    (module / "flavors_added_test.go").write_text(_ADD_FLAVORS)

    go = (find_go().command, "test", "-vet=off", "-tags=e2e", "-run=TestAddFlavors", ".")
    _run(module, *go, CONFIG=str(tmp_path / "clusterctl.yaml"), TARGET=str(tmp_path / "flavors"))

    clusterctl = str(tools.path(core_module(default_core()), "clusterctl"))
    copied = tmp_path / "flavors" / "infrastructure-tidal" / "v0.1.0"
    for name in ("", "-taints", "-kcp-remediation", "-topology"):
        command = ("generate", "yaml", "--from", str(copied / f"cluster-template{name}.yaml"))
        documents = yaml.safe_load_all(_run(tmp_path, clusterctl, *command, **_VARIABLES))
        objects = {each["kind"]: each for each in documents}
        labels = objects["Cluster"]["metadata"]["labels"]
        assert objects["ConfigMap"]["data"] == {"network.yaml": _MANIFEST}
        assert ("own" in labels) == (name != "-topology")
        selected = objects["ClusterResourceSet"]["spec"]["clusterSelector"]["matchLabels"]
        assert selected.items() <= labels.items()


@pytest.mark.exhaustive
def test_specs_run_as_the_readme_says(tools: Toolbox, tmp_path: Path) -> None:
    """`make e2e`, typed in the folder after `capsmith new`, runs specs, and leaves no lab."""
    state = tmp_path / "state"
    scripts = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    capsmith = (sys.executable, "-m", "capsmith")
    # One for each thing that a lab simulates: machines, Pods, and machines without their objects;
    # those whose runtime extension is the process of the tests; and one that renames the Cluster of
    # a template, but not its Secrets.
    words = ("Scaling", "Draining", "Adopting", "runtime.extension", "several")
    focus = " ".join(f"--ginkgo.focus={each}" for each in words)
    _run(tmp_path, *capsmith, "new", "made", "--no-input", "name=acme", "e2e=yes")

    _run(
        tmp_path / "made",
        *("make", "e2e", f"ARGS={focus}", f"PYTHON={sys.executable}"),
        PATH=scripts,
        XDG_STATE_HOME=str(state),
    )

    assert not state.exists() or list(state.rglob("*e2e*")) == []
    shutil.rmtree(tmp_path / "made")


@pytest.mark.exhaustive
@pytest.mark.parametrize("example", _OTHER_PROVIDERS)
def test_specs_run_with_other_providers(example: str, tools: Toolbox, tmp_path: Path) -> None:
    """Specs pass with several versions and webhooks, and with the code for EC2 on moto."""
    results = run_specs(example, tmp_path, _TITLES)
    for each in results:
        print(each.describe())
    assert [each for each in results if each.state != "passed"] == []
    assert len(results) > len(_TITLES)
