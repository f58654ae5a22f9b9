"""Connect to the cluster in a user's kubeconfig, interpreting the file as kubectl does.

`verify --live`, `conformance --kubeconfig` and the lab all use this reader.  It is implemented here
so that `verify` needs no extra package, and so that unsupported settings are refused rather than
ignored.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from capsmith.clusters.processes.exec_plugin import VERSIONS, ExecPlugin, PluginError, is_token
from capsmith.clusters.processes.kube import Credentials, KubeClient
from capsmith.clusters.processes.kubeconfig_checks import decode, explain_content, explain_entries
from capsmith.errors import UnreadableInput
from capsmith.manifests.parse import list_of, mapping_of, read_substituted, text_of
from capsmith.regular_files import read_regular

_HINT = "Correct the kubeconfig, or specify another one with --kubeconfig."
_MAX_BYTES = 4 * 1024 * 1024
_SECTIONS = {"cluster": "clusters", "user": "users", "context": "contexts"}
_UNSUPPORTED = {
    "user": (
        *("auth-provider", "username", "password"),
        *("as", "as-uid", "as-groups", "as-user-extra"),
    ),
    "cluster": ("proxy-url", "tls-server-name", "insecure-skip-tls-verify"),
}
_USE_TOKEN = "Specify a kubeconfig with a client certificate, a token or `exec`."


@dataclass(frozen=True)
class ClusterAccess:
    """A cluster and a user from a kubeconfig, and the folders that their paths are relative to."""

    server: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    folders: Mapping[str, Path]


class _Entry(NamedTuple):
    """A cluster, user or context, and the folder of its kubeconfig."""

    data: Mapping[str, Any]
    folder: Path


def find_kubeconfigs(named: Path | None, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the paths to the files that kubectl would read.

    These are ``named`` if given, else the files in $KUBECONFIG, else ~/.kube/config.
    """
    if named is not None:
        return (named,)
    listed = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    # Like kubectl, skip missing files in $KUBECONFIG unless all of them are missing.
    if listed:
        return tuple(path for path in listed if path.exists()) or tuple(listed[:1])
    return (Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config",)


def read_access(files: tuple[Path, ...], context: str = "") -> ClusterAccess:
    """Return a context's cluster and user. If ``context`` is empty, use the current context.

    If several files have entries of the same name, that of the first file is used.  Raises
    UnreadableInput if the files are invalid, or if the context, its cluster or its user is missing.
    """
    entries: dict[tuple[str, str], _Entry] = {}
    for path in files:
        config = _read(path)
        # The first file that names a current context decides, as in client-go.
        context = context or text_of(config, "current-context")
        for key, section in _SECTIONS.items():
            _check_unique(path, key, [text_of(item, "name") for item in list_of(config, section)])
            for item in list_of(config, section):
                # Relative paths in an entry are relative to its own file's folder, not to the first
                # file's.
                entry = _Entry(mapping_of(item, key), path.absolute().parent)
                entries.setdefault((key, text_of(item, "name")), entry)
    if not context:
        raise _wrong(
            files[0], "the kubeconfig has no current context", "Specify one with --context."
        )
    chosen = _entry(entries, "context", context, files[0]).data
    # kubectl sends requests without credentials if the user is missing; no check could succeed.
    parts = {key: _entry(entries, key, text_of(chosen, key), files[0]) for key in _UNSUPPORTED}
    for key, names in _UNSUPPORTED.items():
        for name in names:
            if parts[key].data.get(name):
                raise _wrong(files[0], f"`{name}` of a {key} is not supported", _USE_TOKEN)
    if problem := explain_entries(parts["cluster"].data, parts["user"].data):
        raise _wrong(files[0], problem)
    server = text_of(parts["cluster"].data, "server")
    if not _is_https(server):
        raise _wrong(files[0], f"server {server!r} is not an https URL")
    folders = {key: entry.folder for key, entry in parts.items()}
    return ClusterAccess(server, parts["cluster"].data, parts["user"].data, folders)


def _check_unique(path: Path, key: str, names: list[str]) -> None:
    """Raise UnreadableInput if a file has two entries of one name, which kubectl refuses, too."""
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated is not None:
        raise _wrong(path, f"it has two entries for the {key} {repeated!r}")


def _is_https(server: str) -> bool:
    # Python drops some of these characters, and Go refuses them.
    if any(character <= " " or character == "\x7f" for character in server):
        return False
    try:
        address = urlsplit(server)
        # Both raise ValueError: for a number that is no port, and for a name that no host has.
        return address.scheme == "https" and address.port != 0 and bool(_encode_host(address))
    except ValueError:
        return False


def _encode_host(address: SplitResult) -> bytes:
    return (address.hostname or "").encode("idna")


@contextmanager
def connect(access: ClusterAccess) -> Iterator[KubeClient]:
    """Return a context manager that provides a client.

    Embedded keys are kept in a private folder until the context manager exits.  Raises
    UnreadableInput if certificates, keys or the `exec` command cannot be used.
    """
    with (
        tempfile.TemporaryDirectory(prefix="capsmith-") as folder,
        closing(_client(access, Path(folder))) as client,
    ):
        yield client


def open_client(kubeconfig: Path, folder: Path) -> KubeClient:
    """Return a client for a kubeconfig's current context. The caller must close it.

    Embedded keys are written to ``folder``, which must exist as long as the client is used.  Raises
    UnreadableInput (``kubeconfig``) if the kubeconfig cannot be used.
    """
    return _client(read_access((kubeconfig,)), folder)


def _client(access: ClusterAccess, folder: Path) -> KubeClient:
    files = _Files(access, folder)
    authority = files.path("cluster", "certificate-authority") or _trusted()
    cert, key = files.path("user", "client-certificate"), files.path("user", "client-key")
    token = _find_token(access, files)
    if not is_token(token):
        message = "the token has characters that no header can have"
        raise UnreadableInput("kubeconfig", message, hint=_HINT)
    # As in client-go, a token or certificate in the kubeconfig takes precedence over the command.
    plugin = None if token or (cert and key) else _plugin(access)
    try:
        for path in (authority, cert, key):
            if path is not None:  # OpenSSL would wait for a pipe
                read_regular(path)
        if plugin is not None:
            data = plugin.certificate()
            if all(data):
                cert, key = files.write("exec.crt", data[0]), files.write("exec.key", data[1])
            # Certificates are loaded once; only a token can be renewed while the client is in use.
            plugin = plugin if plugin.token() else None
        return KubeClient(access.server, Credentials(authority, cert, key, token or None, plugin))
    except PluginError as error:
        raise UnreadableInput("kubeconfig", f"exec of the user: {error}", hint=_HINT) from error
    except (OSError, ValueError) as error:
        message = f"certificate or key cannot be used: {error}"
        raise UnreadableInput("kubeconfig", message, hint=_HINT) from error


def _find_token(access: ClusterAccess, files: _Files) -> str:
    """Return the token of the user, or an empty string.

    As in client-go, that of `tokenFile` takes precedence, unless the file cannot be read.
    """
    token = text_of(access.user, "token")
    try:
        return files.text("user", "tokenFile") or token
    except UnreadableInput:
        if token:
            return token
        raise


def _plugin(access: ClusterAccess) -> ExecPlugin | None:
    config = mapping_of(access.user, "exec")
    if not config:
        return None
    if text_of(config, "apiVersion") not in VERSIONS:
        message = f"exec of the user must have the apiVersion {' or '.join(VERSIONS)}"
        raise UnreadableInput("kubeconfig", message, hint=_USE_TOKEN)
    if text_of(config, "interactiveMode") == "Always":
        message = "exec of the user requires a terminal (interactiveMode: Always)"
        raise UnreadableInput("kubeconfig", message, hint=_USE_TOKEN)
    return ExecPlugin(config, _cluster_info(access), access.folders["user"])


def _cluster_info(access: ClusterAccess) -> dict[str, Any]:
    """Return the cluster in the form that credential plugins expect, with the CA as data."""
    info: dict[str, Any] = {"server": access.server}
    data = text_of(access.cluster, "certificate-authority-data")
    name = text_of(access.cluster, "certificate-authority")
    if name and not data:
        text = _text(access.folders["cluster"] / name)
        data = base64.b64encode(text.encode()).decode()
    if data:
        info["certificate-authority-data"] = data
    for extension in list_of(access.cluster, "extensions"):
        if text_of(extension, "name") == "client.authentication.k8s.io/exec":
            info["config"] = mapping_of(extension).get("extension")
    return info


@dataclass(frozen=True)
class _Files:
    access: ClusterAccess
    folder: Path

    def path(self, part: str, key: str) -> Path | None:
        """Return the path to a file with the value of ``key``, or None if there is none.

        The value is given in the kubeconfig either as data or as a path.  ``part`` is ``cluster``
        or ``user``.
        """
        entry = self.access.cluster if part == "cluster" else self.access.user
        data = text_of(entry, f"{key}-data")
        if data:  # it was checked when the kubeconfig was read
            return self.write(f"{part}-{key}", decode(data))
        name = text_of(entry, key)
        return self.access.folders[part] / name if name else None

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file that only this user can read, and return the path to it."""
        target = self.folder / name
        # Private from the start: a chmod after writing would leave a gap.
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        return target

    def text(self, part: str, key: str) -> str:
        """Return the content of the file that ``key`` refers to; empty if the key is missing."""
        name = text_of(self.access.user, key)
        return _text(self.access.folders[part] / name).strip() if name else ""


def _trusted() -> Path:
    """Return the path to the file of certificate authorities that this computer trusts."""
    file = ssl.get_default_verify_paths().cafile
    if file is None:
        raise UnreadableInput("kubeconfig", "the cluster has no certificate-authority", hint=_HINT)
    return Path(file)


def _entry(entries: Mapping[tuple[str, str], _Entry], key: str, name: str, file: Path) -> _Entry:
    if (key, name) not in entries:
        known = sorted(other for kind, other in entries if kind == key)
        hint = f"Use one of: {', '.join(known)}." if known else _HINT
        raise _wrong(file, f"unknown {key} {name!r}", hint)
    return entries[key, name]


def _read(path: Path) -> Mapping[str, Any]:
    # Parsed with the same limits as manifests, because a kubeconfig may come from anywhere.
    manifests, findings = read_substituted(_text(path), str(path), "")
    if findings or len(manifests) > 1:
        raise _wrong(path, findings[0].message if findings else "the file is not a kubeconfig")
    # An empty file has no entries, as in client-go.
    config = manifests[0].document if manifests else {}
    if problem := explain_content(config):
        raise _wrong(path, problem)
    return config


def _text(path: Path) -> str:
    try:
        data = read_regular(path, _MAX_BYTES)
        if len(data) > _MAX_BYTES:
            raise _wrong(path, "the file is too large")
        return data.decode()
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _wrong(path, "the file is not UTF-8 text") from error
    except ValueError as error:
        raise _wrong(path, f"cannot be read: {error}") from error


def _wrong(path: Path, message: str, hint: str = _HINT) -> UnreadableInput:
    return UnreadableInput("kubeconfig", message, file=str(path), hint=hint)
