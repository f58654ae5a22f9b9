"""Run a kubeconfig's credential command, as used with EKS, GKE and AKS.

Source: Kubernetes, client-go credential plugins; API group client.authentication.k8s.io.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.process import run_limited
from capsmith.manifests.parse import list_of, mapping_of, text_of
from capsmith.provider_yaml.string_formats import is_timestamp

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MARGIN = timedelta(seconds=30)
"""Remaining lifetime below which a token is not used, because it could expire during a request."""
_SECONDS = 60.0
_MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of what the command writes."""
_NEVER = datetime.max.replace(tzinfo=UTC)
_SHOWN = 200


class PluginError(OSError):
    """Raised if the command cannot run, fails, or prints no valid credentials.

    It is an OSError because it means the same to a caller that sends a request: there is no
    response.
    """


class ExecPlugin:
    """Credentials from a command, which is run again after they have expired.

    Thread-safe: all of a client's threads share one instance, which never runs the command twice at
    the same time.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        cluster: Mapping[str, Any],
        folder: Path,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Define the command from ``config``, the `exec` entry of a kubeconfig's user.

        ``cluster`` is passed to commands that request it.  A relative command path is relative to
        ``folder``, the folder of the kubeconfig.  ``now`` returns the current time.
        """
        self._config = config
        self._cluster = cluster
        self._folder = folder
        self._now = now
        self._lock = threading.Lock()
        self._status: Mapping[str, Any] | None = None
        self._expires = _NEVER

    def token(self) -> str:
        """Return a valid token, or an empty string if the command provides only a certificate.

        Runs the command if the token has expired.  Raises PluginError if the command fails.
        """
        return text_of(self._credentials(), "token")

    def certificate(self) -> tuple[str, str]:
        """Return the certificate and key in PEM, or empty strings if there is only a token.

        Raises PluginError if the command fails.
        """
        status = self._credentials()
        return text_of(status, "clientCertificateData"), text_of(status, "clientKeyData")

    def expire(self) -> None:
        """Discard the credentials because the server rejected them. The next use gets new ones."""
        with self._lock:
            self._status = None

    def _credentials(self) -> Mapping[str, Any]:
        with self._lock:
            # Not a subtraction: the zero time of Go is the first that Python has.
            if self._status is None or self._now() + _MARGIN >= self._expires:
                status = self._run()
                self._expires = _expiry(status)
                self._status = status
            return self._status

    def _run(self) -> Mapping[str, Any]:
        version = text_of(self._config, "apiVersion")
        command = [self._command(), *map(str, list_of(self._config, "args"))]
        entries = [mapping_of(entry) for entry in list_of(self._config, "env")]
        environment = {text_of(entry, "name"): text_of(entry, "value") for entry in entries}
        spec: dict[str, Any] = {"interactive": False}
        if self._config.get("provideClusterInfo") is True:
            spec["cluster"] = dict(self._cluster)
        request = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        try:
            # Without standard input, a command that prompts the user fails immediately instead of
            # waiting.
            ended = run_limited(
                command,
                {**os.environ, **environment, "KUBERNETES_EXEC_INFO": json.dumps(request)},
                timeout=_SECONDS,
                limit=_MAX_BYTES,
            )
        except (OSError, ValueError) as error:
            raise PluginError(f"{command[0]} cannot run: {error}") from error
        except ProcessError as error:
            raise PluginError(f"{command[0]}: {error}") from error
        if ended.code:
            lines = ended.errors.decode(errors="replace").strip().splitlines()
            last = (lines or ["no message"])[-1][:_SHOWN]
            raise PluginError(f"{command[0]} failed with exit code {ended.code}: {last}")
        return _status(ended.output.decode(errors="replace"), version, command[0])

    def _command(self) -> str:
        name = text_of(self._config, "command")
        if os.sep in name:
            return str(self._folder / name)
        found = shutil.which(name)
        if found is None:
            hint = " ".join(text_of(self._config, "installHint").split())[:_SHOWN]
            raise PluginError(f"{name} is not in PATH. {hint}".strip())
        return found


def _status(text: str, version: str, command: str) -> Mapping[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PluginError(f"{command} did not print JSON") from error
    if text_of(answer, "apiVersion") != version:
        raise PluginError(f"{command} did not print an ExecCredential of {version}")
    status = mapping_of(answer, "status")
    has_certificate = text_of(status, "clientCertificateData") and text_of(status, "clientKeyData")
    token = text_of(status, "token")
    if not token and not has_certificate:
        raise PluginError(f"{command} printed neither a token nor a certificate with its key")
    if not is_token(token):
        raise PluginError(f"{command} printed a token with characters that no header can have")
    return status


def is_token(text: str) -> bool:
    """Return whether a text can be in the header of a request."""
    return text.isascii() and text.isprintable()


def _expiry(status: Mapping[str, Any]) -> datetime:
    text = text_of(status, "expirationTimestamp")
    try:
        # Python also reads other formats than RFC 3339, which kubectl refuses.
        if text and not is_timestamp(text):
            raise ValueError(text)
        return datetime.fromisoformat(text) if text else _NEVER
    except ValueError as error:
        raise PluginError(f"expirationTimestamp {text!r} is not a time") from error
