"""A manager that finds no cluster says so in one line of its log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capsmith_runtime.kube.connection import ConfigError, load_config
from capsmith_runtime.manager import KUBECONFIG_HINT

UNREADABLE = {
    "broken YAML": "{clusters: [",
    "no mapping": "- 1",
    "other types": "{clusters: 1, contexts: 2, users: 3}",
    "no context": "{apiVersion: v1, kind: Config, clusters: [], contexts: [], users: []}",
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_kubeconfig_is_reported_in_one_line(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(ConfigError) as caught:
        load_config()
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


PROGRAM = """
from capsmith_runtime.component import Component
from capsmith_runtime.manager import main

component = Component(label="x", namespace="x-system", contract="v1beta2", groups=())
raise SystemExit(main(["x"], lambda name: component, []))
"""


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x}}]
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
"""
LATE_IMPORTS = """
import asyncio, sys
from capsmith_runtime import manager
from capsmith_runtime.component import Component

async def import_late(*arguments):
    print(sorted({"httpcore2", "anyio"} - sys.modules.keys()))

manager._run_until_signal = import_late
component = Component(label="x", namespace="x-system", contract="v1beta2", groups=())
raise SystemExit(manager.main(["x"], lambda name: component, []))
"""


def test_the_http_library_is_imported_before_the_event_loop_runs(tmp_path: Path) -> None:
    """Its imports take 0.2 s, during which the event loop could not answer probes."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    done = subprocess.run(
        [sys.executable, "-c", LATE_IMPORTS],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_a_manager_without_a_cluster_ends_without_a_traceback(tmp_path: Path) -> None:
    # A process of its own: a manager changes logging and the garbage collector of its process.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "KUBECONFIG": str(tmp_path / "missing")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    build, line = done.stderr.splitlines()
    assert "manager starting" in build
    assert str(tmp_path / "missing") in line
    assert KUBECONFIG_HINT in line
