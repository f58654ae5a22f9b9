"""The real clusterctl, run with a configuration of the tests' own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.e2e.tools import Toolbox

from .kube import JSON

_COMMAND_SECONDS = 600


class ClusterctlError(AssertionError):
    """clusterctl ended with an error; carries what it printed."""


class Clusterctl:
    """Runs one release of clusterctl; every output is kept in a log."""

    def __init__(self, tools: Toolbox, series: str, config: Path, folder: Path) -> None:
        self._binary = tools.path(f"capi-{series}", "clusterctl")
        self._config = config
        self._home = folder / "clusterctl-home"
        self._home.mkdir(parents=True, exist_ok=True)
        self._log = folder / "clusterctl.log"

    def init(
        self, kubeconfig: Path, providers: Mapping[str, str], variables: Mapping[str, str]
    ) -> None:
        """Install core and providers, which are given by type: `{"bootstrap": "fake"}`."""
        flags = [f"--{type}={name}" for type, name in providers.items()]
        self._run(["init", "--core=cluster-api", *flags], kubeconfig, variables)

    def init_more(
        self,
        kubeconfig: Path,
        name: str,
        variables: Mapping[str, str],
        *types: str,
    ) -> None:
        """Install a provider where core and the helpers are already; infrastructure by default.

        Several types need one call: the next one must wait until a namespace is gone in which
        clusterctl looks for cert-manager.
        """
        flags = [f"--{type}={name}" for type in types or ("infrastructure",)]
        self._run(["init", *flags], kubeconfig, variables)

    def generate(
        self,
        kubeconfig: Path,
        cluster: str,
        options: Mapping[str, object],
        variables: Mapping[str, str],
    ) -> list[JSON]:
        """The objects of `generate cluster`; options are its flags without the dashes."""
        flags = [f"--{name}={value}" for name, value in options.items()]
        text = self._run(["generate", "cluster", cluster, *flags], kubeconfig, variables)
        return [document for document in yaml.safe_load_all(text) if document]

    def move(self, kubeconfig: Path, target: Path, namespace: str) -> None:
        self._run(["move", f"--to-kubeconfig={target}", f"--namespace={namespace}"], kubeconfig)

    def upgrade(
        self, kubeconfig: Path, targets: Mapping[str, str], variables: Mapping[str, str]
    ) -> None:
        """`upgrade apply` of providers by type: `{"core": "cluster-api:v1.13.6"}`."""
        flags = [f"--{type}={target}" for type, target in targets.items()]
        self._run(["upgrade", "apply", *flags], kubeconfig, variables)

    def delete_provider(self, kubeconfig: Path, name: str, type: str = "infrastructure") -> None:
        """Remove a provider, keeping its CRDs and namespace."""
        self._run(["delete", f"--{type}={name}"], kubeconfig)

    def _run(
        self, argv: list[str], kubeconfig: Path, variables: Mapping[str, str] | None = None
    ) -> str:
        command = [str(self._binary), *argv, f"--kubeconfig={kubeconfig}"]
        command.append(f"--config={self._config}")
        env = {
            **os.environ,
            **(variables or {}),
            # No look at the network for newer releases, no files in the user's home.
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
            "GOPROXY": "off",
            "XDG_CONFIG_HOME": str(self._home),
        }
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=_COMMAND_SECONDS
        )
        with self._log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}\n")
        if done.returncode != 0:
            raise ClusterctlError(f"clusterctl {' '.join(argv)}:\n{done.stdout}{done.stderr}")
        return done.stdout
