"""Run the real clusterctl with its own configuration, and without files in the home folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from capsmith.clusters.processes.errors import ClusterctlError
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.tools import Toolbox

_COMMAND_SECONDS = 600
_AWAITED = ("--wait-providers", "--wait-provider-timeout=300")


class Clusterctl:
    """One release of clusterctl. Its output is appended to a log.

    All methods raise ClusterctlError if clusterctl fails or takes longer than ten minutes.
    """

    def __init__(self, tools: Toolbox, series: str, config: Path, folder: Path) -> None:
        self._start(tools.path(f"capi-{series}", "clusterctl"), config, folder)

    @classmethod
    def installed(cls, binary: Path, config: Path, folder: Path) -> Clusterctl:
        """Return an instance that uses an installed binary instead of a built tool."""
        clusterctl = cls.__new__(cls)
        clusterctl._start(binary, config, folder)
        return clusterctl

    def _start(self, binary: Path, config: Path, folder: Path) -> None:
        self._binary = binary
        self.config = config
        self._home = folder / "clusterctl-home"
        self._home.mkdir(parents=True, exist_ok=True)
        self._log = folder / "clusterctl.log"

    def init(
        self,
        kubeconfig: Path,
        providers: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        is_awaited: bool = False,
    ) -> None:
        """Install core and ``providers``, which maps types to names: `{"bootstrap": "kubeadm"}`.

        If ``is_awaited`` is true, wait until their Deployments are available.
        """
        flags = [f"--{type}={name}" for type, name in providers.items()]
        if is_awaited:
            flags += _AWAITED
        self._run(["init", "--core=cluster-api", *flags], kubeconfig, variables)

    def init_more(
        self,
        kubeconfig: Path,
        name: str,
        variables: Mapping[str, str],
        *types: str,
        is_awaited: bool = False,
    ) -> None:
        """Install another provider in a cluster that already has core.

        ``types`` are the provider types to install; the default is infrastructure.  Call
        `Connection.wait_clusterctl` first.  For ``is_awaited``, see :meth:`init`.
        """
        flags = [f"--{type}={name}" for type in types or ("infrastructure",)]
        if is_awaited:
            flags += _AWAITED
        self._run(["init", *flags], kubeconfig, variables)

    def generate(
        self,
        kubeconfig: Path,
        cluster: str,
        options: Mapping[str, object],
        variables: Mapping[str, str],
    ) -> list[JSON]:
        """Return the objects that `generate cluster` prints.

        ``options`` maps option names, without leading dashes, to values.
        """
        flags = [f"--{name}={value}" for name, value in options.items()]
        text = self._run(["generate", "cluster", cluster, *flags], kubeconfig, variables)
        return [document for document in yaml.safe_load_all(text) if document]

    def move(self, kubeconfig: Path, target: Path, namespace: str) -> None:
        """Move the clusters in a namespace to another management cluster.

        ``target`` is the path to the other cluster's kubeconfig.
        """
        self._run(["move", f"--to-kubeconfig={target}", f"--namespace={namespace}"], kubeconfig)

    def upgrade(
        self,
        kubeconfig: Path,
        targets: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        is_awaited: bool = False,
    ) -> None:
        """Run `upgrade apply`.

        ``targets`` maps each type to a target version: `{"core": "cluster-api:v1.13.6"}`. For
        ``is_awaited``, see :meth:`init`.
        """
        flags = [f"--{type}={target}" for type, target in targets.items()]
        if is_awaited:
            flags += _AWAITED
        self._run(["upgrade", "apply", *flags], kubeconfig, variables)

    def delete_provider(self, kubeconfig: Path, name: str, type: str = "infrastructure") -> None:
        """Delete a provider, but keep its CRDs and namespace."""
        self._run(["delete", f"--{type}={name}"], kubeconfig)

    def _run(
        self, argv: list[str], kubeconfig: Path, variables: Mapping[str, str] | None = None
    ) -> str:
        command = [str(self._binary), *argv, f"--kubeconfig={kubeconfig}"]
        command.append(f"--config={self.config}")
        env = {
            **os.environ,
            **(variables or {}),
            # Prevents requests for newer releases, and files in the home folder.
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
            "GOPROXY": "off",
            "XDG_CONFIG_HOME": str(self._home),
        }
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, text=True, timeout=_COMMAND_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            message = f"clusterctl {' '.join(argv)}: timed out after {_COMMAND_SECONDS} s"
            raise ClusterctlError(message) from error
        with self._log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}\n")
        if done.returncode != 0:
            raise ClusterctlError(f"clusterctl {' '.join(argv)}:\n{done.stdout}{done.stderr}")
        return done.stdout
