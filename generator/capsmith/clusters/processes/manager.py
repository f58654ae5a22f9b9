"""Run an installed Deployment's manager as a process instead of a Pod.

Only settings that local processes cannot share are changed: addresses, certificates, and leader
election, whose namespace a manager normally reads from its Pod.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsmith.clusters.processes.component import ReleaseComponent
from capsmith.clusters.processes.connection import Connection
from capsmith.clusters.processes.errors import ManagerEnded, ProcessError, UnsupportedDeployment
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig, request_token
from capsmith.clusters.processes.process import Process, free_port, probe_http, read_output

_CONTAINER = "manager"
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@dataclass(frozen=True)
class Launch:
    """A container's arguments and environment, resolved as the kubelet would."""

    service_account: str
    args: tuple[str, ...]
    """The command without its first word, followed by the arguments."""
    env: dict[str, str]
    port: int
    """Port for the probes; 0 if there are none."""
    readiness: str
    """URL path for the readiness probe; empty if there is none."""
    liveness: str
    """URL path for the liveness probe; empty if there is none."""


def read_launch(client: KubeClient, namespace: str, pod: str) -> Launch:
    """Return the command that the only Deployment in a namespace would run in a Pod named ``pod``.

    The container is the only one, or the one named `manager`.  Raises UnsupportedDeployment if
    there are several Deployments or containers to choose from, or if a variable's source has no
    equivalent for a process.
    """
    deployments = client.list("apps/v1", "Deployment", namespace)
    if len(deployments) != 1:
        found = [each["metadata"]["name"] for each in deployments]
        raise UnsupportedDeployment(
            f"namespace {namespace} must have exactly one Deployment: {found}"
        )
    spec = deployments[0]["spec"]["template"]["spec"]
    container = _manager(spec["containers"], namespace)
    fields = {
        "metadata.namespace": namespace,
        "metadata.name": pod,
        "metadata.uid": str(uuid.uuid4()),
        "spec.serviceAccountName": _account(spec),
        "status.podIP": "127.0.0.1",
    }
    variables = container.get("env") or []
    env = {each["name"]: _value(client, each, fields, namespace) for each in variables}
    # The user's command replaces the program itself, but other flags come from the Deployment.
    words = [*(container.get("command") or [])[1:], *(container.get("args") or [])]
    port, readiness, liveness = _probes(container)
    return Launch(
        service_account=_account(spec),
        args=tuple(_expand(word, env) for word in words),
        env=env,
        port=port,
        readiness=readiness,
        liveness=liveness,
    )


def _manager(containers: list[JSON], namespace: str) -> JSON:
    named = [each for each in containers if each["name"] == _CONTAINER] or containers
    if len(named) != 1:
        names = [each["name"] for each in containers]
        raise UnsupportedDeployment(f"no container of {namespace} is named manager: {names}")
    return named[0]


def _account(spec: JSON) -> str:
    return str(spec.get("serviceAccountName") or "default")


def _value(client: KubeClient, variable: JSON, fields: dict[str, str], namespace: str) -> str:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value", ""))
    if "fieldRef" in source and source["fieldRef"]["fieldPath"] in fields:
        return fields[source["fieldRef"]["fieldPath"]]
    for key, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        if key in source:
            return _value_of(client, kind, source[key], namespace)
    raise UnsupportedDeployment(f"variable {variable['name']} comes from {source}")


def _value_of(client: KubeClient, kind: str, reference: JSON, namespace: str) -> str:
    found = client.find("v1", kind, reference["name"], namespace) or {}
    value = (found.get("data") or {}).get(reference["key"])
    if value is None:
        if reference.get("optional"):
            return ""
        raise UnsupportedDeployment(f"{kind} {reference['name']} has no {reference['key']}")
    return base64.b64decode(value).decode() if kind == "Secret" else str(value)


def _expand(word: str, env: dict[str, str]) -> str:
    """Replace `$(NAME)` with the variable's value; unknown names stay unchanged, as in a Pod."""
    return _REFERENCE.sub(lambda match: env.get(match[1], match[0]), word)


def _probes(container: JSON) -> tuple[int, str, str]:
    probes = {name: _probe(container, name) for name in ("readiness", "liveness")}
    ports = {port for port, path in probes.values() if path}
    if len(ports) > 1:
        raise UnsupportedDeployment(f"the probes have several ports: {sorted(ports)}")
    return next(iter(ports), 0), probes["readiness"][1], probes["liveness"][1]


def _probe(container: JSON, name: str) -> tuple[int, str]:
    """Return port and path of an HTTP probe, or 0 and an empty path if there is none."""
    probe = (container.get(f"{name}Probe") or {}).get("httpGet")
    if not probe:
        return 0, ""
    return _port(container, probe["port"]), str(probe.get("path") or "/")


def _port(container: JSON, port: Any) -> int:
    if isinstance(port, int):
        return port
    for name, number in _named_ports(container):
        if name == port:
            return number
    raise UnsupportedDeployment(f"no port of the container is named {port}")


def _named_ports(container: JSON) -> Iterator[tuple[str, int]]:
    for each in container.get("ports") or []:
        yield each.get("name", ""), int(each["containerPort"])


_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
_HELP_SECONDS = 120.0
_HELP_BYTES = 1024 * 1024
_HEALTH = ("health-addr", "health-probe-bind-address", "health-probe-addr")
_OTHER_ADDRESSES = ("diagnostics-address", "metrics-bind-address", "metrics-addr")
_CERTIFICATES = ("webhook-cert-dir", "webhook-cert-path")


class ProviderManager:
    """A component's manager, run as a local process against a management cluster."""

    def __init__(
        self,
        argv: Sequence[str],
        component: ReleaseComponent,
        management: Connection,
        environment: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        name: str = "",
        *,
        kept: bool = True,
    ) -> None:
        """Define a manager that runs the command ``argv``, without starting it.

        ``flags`` are added after the flags in its Deployment.  If ``kept`` is true, the manager is
        restarted whenever it fails, as in a Deployment.
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
        self._is_wanted = False

    @property
    def variables(self) -> dict[str, str]:
        """Return the values of clusterctl variables for installing the provider.

        With these values, the installed provider uses this process as its manager.
        """
        return {self._component.port_variable: str(self.webhook_port)}

    @property
    def log(self) -> Path:
        """Return the path of the manager's log, which exists after the first start."""
        return self._management.folder / f"{self._name}.log"

    @property
    def pid(self) -> int:
        """Return the process id, or 0 if the manager is not running."""
        process = self._process
        return process.pid if process is not None and process.running else 0

    @property
    def process(self) -> Process:
        """Return the manager's process.

        Raises ProcessError before the first start.
        """
        if self._process is None:
            raise ProcessError(f"{self._name} was not started")
        return self._process

    def start(self) -> None:
        """Start the manager with its ServiceAccount's token, and wait until it is ready.

        Raises ProcessError if it exits or does not become ready, and UnsupportedDeployment if the
        Deployment cannot be run as a process.
        """
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the manager with its ServiceAccount's token, without waiting until it is ready.

        Raises UnsupportedDeployment if the Deployment cannot be run as a process.
        """
        if self._process is None:
            self._process = self._define()
        self._process.start()
        self._is_wanted = True

    def wait_ready(self) -> None:
        """Wait until the manager is ready.

        Raises ProcessError if it exits or does not become ready.
        """
        if self._readiness:
            url = f"http://127.0.0.1:{self._health_port}{self._readiness}"
            self.process.wait_ready(probe_http(url))

    def check(self) -> None:
        """Raise ManagerEnded if the manager has ended by itself."""
        if not self._is_wanted:
            return
        try:
            self.process.check()
        except ProcessError as error:
            raise ManagerEnded(error.finding.message) from error

    def kill(self) -> None:
        """Kill the process with SIGKILL, simulating a crash."""
        self._is_wanted = False
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Stop the manager's process, if it was started."""
        self._is_wanted = False
        if self._process is not None:
            self._process.stop()

    def _define(self) -> Process:
        management, namespace = self._management, self._component.namespace
        launch = read_launch(management.client, namespace, self._name)
        user = f"system:serviceaccount:{namespace}:{launch.service_account}"
        try:
            management.wait_permitted(user, self._component.listed)
        except TimeoutError as error:
            raise ProcessError(str(error)) from error
        client = management.client
        token = request_token(client, namespace, launch.service_account)
        kubeconfig = management.folder / f"{self._name}.kubeconfig"
        kubeconfig.write_text(render_token_kubeconfig(client.server, client.credentials.ca, token))
        # Managers have different flags, and an unknown flag would make a manager exit, so only
        # known flags are changed.  Flags set in the Deployment are known even if the help does not
        # list them.
        known = self._known_flags() | set(_flags_of(launch.args))
        local = self._local_flags(known)
        arguments = [*choose_arguments(self._argv, launch.args, local), *self._flags]
        if known & set(_HEALTH):
            self._readiness = launch.readiness
        # Not this process's environment, because a manager in a Pod would not see it either.
        environment = {"KUBECONFIG": str(kubeconfig), **launch.env, **self._environment}
        command = [*self._argv, *arguments]
        return Process(self._name, command, self.log, environment, kept=self._kept)

    def _known_flags(self) -> set[str]:
        """Return the flags that the manager's help lists."""
        command = [*self._argv, "--help"]
        output = read_output(command, self._environment, timeout=_HELP_SECONDS, limit=_HELP_BYTES)
        return set(_FLAG.findall(output.decode(errors="replace")))

    def _local_flags(self, known: set[str]) -> dict[str, str]:
        flags = dict.fromkeys(_HEALTH, f"127.0.0.1:{self._health_port}")
        flags |= {name: f"127.0.0.1:{free_port()}" for name in _OTHER_ADDRESSES if name in known}
        flags |= dict.fromkeys(_CERTIFICATES, str(self._certificates()))
        flags |= {
            # The lease would be in the Pod's namespace, which a process does not have, and there is
            # no rival.
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


def choose_arguments(
    command: Sequence[str], deployed: Sequence[str], local: Mapping[str, str]
) -> list[str]:
    """Return the arguments to add to a user's command.

    They are those of the Deployment, without flags that the command has, and ``local``: flags
    that a process needs, whatever the command says.
    """
    replaced = _flags_of(command[1:])
    replaced |= {name: value not in ("true", "false") for name, value in local.items()}
    kept: list[str] = []
    is_value = False
    for word in deployed:
        if word.startswith("-"):
            is_value = "=" not in word and replaced.get(_name_of(word), False)
            if _name_of(word) not in replaced:
                kept.append(word)
        elif not is_value:
            kept.append(word)
        else:
            is_value = False
    return [*kept, *(f"--{name}={value}" for name, value in local.items())]


def _flags_of(arguments: Sequence[str]) -> dict[str, bool]:
    """Return the names of flags, and whether each has a value, perhaps as a word of its own."""
    following = [*arguments[1:], "-"]
    return {
        _name_of(word): "=" in word or not after.startswith("-")
        for word, after in zip(arguments, following, strict=False)
        if word.startswith("-")
    }


def _name_of(argument: str) -> str:
    return argument.lstrip("-").partition("=")[0]
