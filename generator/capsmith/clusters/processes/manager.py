"""A provider's manager as a process, started as its installed Deployment says.

Only what a process on this machine cannot share with others is different: addresses, certificates
and the leader election, whose namespace a manager learns from its Pod.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from capsmith.clusters.processes.component import Component
from capsmith.clusters.processes.connection import Connection
from capsmith.clusters.processes.deployment import installed
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.kubeconfig import service_account_token, token_kubeconfig
from capsmith.clusters.processes.process import Process, free_port, http_ok

_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
_HELP_SECONDS = 120.0
_HEALTH = ("health-addr", "health-probe-bind-address", "health-probe-addr")
_OTHER_ADDRESSES = ("diagnostics-address", "metrics-bind-address", "metrics-addr")
_CERTIFICATES = ("webhook-cert-dir", "webhook-cert-path")


class ProviderManager:
    """The manager of one component against one management cluster."""

    def __init__(
        self,
        argv: Sequence[str],
        component: Component,
        management: Connection,
        environment: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        name: str = "",
        *,
        kept: bool = True,
    ) -> None:
        """Define a manager; ``flags`` follow those of its Deployment.

        One that is `kept` is restarted whenever it fails, as in a Deployment.
        """
        self._kept = kept
        self._argv = list(argv)
        self._component = component
        self._management = management
        self._environment = {"PATH": os.environ["PATH"], **(environment or {})}
        self._flags = list(flags)
        self._name = name or f"{component.type}-{management.name}"
        self._health_port, self.webhook_port = free_port(), free_port()
        self._process: Process | None = None
        self._readiness = ""

    @property
    def variables(self) -> dict[str, str]:
        """The clusterctl variables with which the provider is installed for this process."""
        return {self._component.port_variable: str(self.webhook_port)}

    @property
    def process(self) -> Process:
        """The process; raises ProcessError before the first start."""
        if self._process is None:
            raise ProcessError(f"{self._name} was not started")
        return self._process

    def start(self) -> None:
        """Start what is installed, with a token of its own ServiceAccount, and wait until ready.

        Raises ProcessError if it ends or does not become ready, and UnsupportedDeployment if its
        Deployment cannot be started as a process.
        """
        if self._process is None:
            self._process = self._define()
        self._process.start()
        if self._readiness:
            url = f"http://127.0.0.1:{self._health_port}{self._readiness}"
            self._process.wait_ready(http_ok(url))

    def kill(self) -> None:
        """End the process as a crash would."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.stop()

    def _define(self) -> Process:
        management, namespace = self._management, self._component.namespace
        launch = installed(management.client, namespace, self._name)
        user = f"system:serviceaccount:{namespace}:{launch.service_account}"
        try:
            management.wait_permitted(user, self._component.listed)
        except TimeoutError as error:
            raise ProcessError(str(error)) from error
        client = management.client
        token = service_account_token(client, namespace, launch.service_account)
        kubeconfig = management.folder / f"{self._name}.kubeconfig"
        kubeconfig.write_text(token_kubeconfig(client.server, client.credentials.ca, token))
        known = self._known_flags() | {_name_of(each) for each in launch.args}
        local = self._local_flags(known)
        kept = [each for each in launch.args if _name_of(each) not in local]
        arguments = [*kept, *(f"--{name}={value}" for name, value in local.items()), *self._flags]
        if known & set(_HEALTH):
            self._readiness = launch.readiness
        environment = {"KUBECONFIG": str(kubeconfig), **launch.env, **self._environment}
        log = management.folder / f"{self._name}.log"
        return Process(self._name, [*self._argv, *arguments], log, environment, kept=self._kept)

    def _known_flags(self) -> set[str]:
        """Return the flags that the manager's own help lists."""
        command = [*self._argv, "--help"]
        try:
            done = subprocess.run(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_HELP_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ProcessError(f"{' '.join(command)}: {error}") from error
        return set(_FLAG.findall(done.stdout.decode(errors="replace")))

    def _local_flags(self, known: set[str]) -> dict[str, str]:
        flags = dict.fromkeys(_HEALTH, f"127.0.0.1:{self._health_port}")
        flags |= {name: f"127.0.0.1:{free_port()}" for name in _OTHER_ADDRESSES if name in known}
        flags |= dict.fromkeys(_CERTIFICATES, str(self._certificates()))
        flags |= {
            "leader-elect": "false",
            "insecure-diagnostics": "true",
            "diagnostics-cert-dir": "",
            "webhook-host": "127.0.0.1",
            "webhook-port": str(self.webhook_port),
            "kubeconfig": str(self._management.folder / f"{self._name}.kubeconfig"),
        }
        return {name: value for name, value in flags.items() if name in known}

    def _certificates(self) -> Path:
        folder = self._management.folder / f"{self._name}-certificate"
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = self._management.serving
        shutil.copyfile(certificate, folder / "tls.crt")
        shutil.copyfile(key, folder / "tls.key")
        return folder


def _name_of(argument: str) -> str:
    return argument.lstrip("-").partition("=")[0]
