"""Variables: capsmith accepts, refuses and expands what the real clusterctl does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.processes.tools.catalogue import core_module, default_core
from tests.e2e.tools.required import required_toolbox
from tests.unit.manifests.substitutions import FORMS, VALUES

_DOCUMENT = "value: |-\n  "


@pytest.fixture(scope="module")
def clusterctl() -> Path:
    return required_toolbox("the forms of variables", [core_module(default_core())]).path(
        core_module(default_core()), "clusterctl"
    )


@pytest.mark.parametrize(("text", "result"), FORMS)
def test_clusterctl_makes_the_same_of_a_form(
    clusterctl: Path, tmp_path: Path, text: str, result: str | None
) -> None:
    """Proves: CC-40."""
    config = tmp_path / "clusterctl.yaml"
    config.write_text("{}\n")
    done = subprocess.run(
        [clusterctl, "generate", "yaml", f"--config={config}"],
        input=f"{_DOCUMENT}{text}\n",
        env={
            **os.environ,
            **VALUES,
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
            "GOPROXY": "off",
            "XDG_CONFIG_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    if result is None:
        assert done.returncode != 0
        assert "yaml document" not in done.stderr, "the form was accepted, and the YAML refused"
    else:
        assert done.returncode == 0, done.stderr
        expected = result.replace("\n  ", "\n")
        assert yaml.safe_load(done.stdout) == {"value": expected}
