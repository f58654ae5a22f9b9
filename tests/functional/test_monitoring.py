"""The optional components, switched on: kustomize builds them, and the release passes verify."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from capsmith.cli import main
from tests.golden.cases import EXAMPLES, Case, generated

COMPONENTS = ("monitoring", "availability", "network-policy")


@pytest.mark.slow
def test_a_release_with_all_components(tmp_path: Path) -> None:
    repository = tmp_path / "acme"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), repository)
    overlay = repository / "config" / "overlay" / "kustomization.yaml"
    with overlay.open("a", encoding="utf-8") as file:
        file.write("components:\n")
        file.writelines(f"- ../components/{name}\n" for name in COMPONENTS)

    out = tmp_path / "out"
    build = [sys.executable, "hack/release.py", "build", "v0.1.0", "--out", str(out)]
    subprocess.run(build, cwd=repository, check=True)
    verdict = CliRunner().invoke(main, ["verify", str(out), "--version", "v0.1.0"])

    assert verdict.exit_code == 0, verdict.output
    assert "0 break, 0 break under a condition" in verdict.output
    # clusterctl's variables must not swallow what Grafana and Prometheus replace.
    text = (out / "infrastructure-components.yaml").read_text(encoding="utf-8")
    built = {each["kind"]: each for each in yaml.safe_load_all(text)}
    assert built["ServiceMonitor"]["metadata"]["namespace"] == "acme-system"
    assert "{{ $labels.controller }}" in yaml.dump(built["PrometheusRule"], width=1000)
    assert "[$__rate_interval]" in str(built["ConfigMap"]["data"])
    assert built["Deployment"]["spec"]["replicas"] == 2
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        spec = built[kind]["spec"]
        selector = spec["selector"] if kind == "PodDisruptionBudget" else spec["podSelector"]
        assert selector == built["Deployment"]["spec"]["selector"]
