"""Writes and parses workload clusters' kubeconfigs, without sending requests."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
import yaml

from capsmith_runtime.contract.model import Endpoint

ADMINISTRATOR: Final = "kubernetes-admin"
ADMINISTRATORS: Final = "system:masters"
SECRET_KEY: Final = "value"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_EVENTS: Final = 10_000
"""Number of YAML events in a kubeconfig; one cluster, user and context have fewer than 100."""
_MAX_DEPTH: Final = 32
_LINE_BREAKS: Final = dict.fromkeys(map(ord, "\r\n"))
# OpenSSL reads thousands of certificates, and signs with RSA keys of any size, which takes hours.
# The event loop waits meanwhile.
_MAX_BYTES: Final = {
    "certificate-authority-data": 256 * 1024,
    "client-certificate-data": 64 * 1024,
    "client-key-data": 4096,
}
"""Maximum sizes in PEM: all root certificates of an operating system have 230,000 bytes, an RSA key
of 4096 bits 3300."""


class KubeconfigError(ValueError):
    """Raised for an unusable kubeconfig; the message never contains credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An API server's address, the CA certificate to trust, and the credentials to use."""

    server: str
    authority: bytes = b""
    """CA certificate in PEM, or empty to trust the system's root certificates."""
    insecure: bool = False
    """Whether to accept the server's certificate without verification."""
    certificate: bytes = b""
    """Client certificate in PEM, or empty if there is none."""
    key: bytes = b""
    """Private key of the client certificate in PEM, or empty if there is none."""
    token: str = ""
    username: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Access({self.server!r}, ...)"


def secret_name(cluster: str) -> str:
    """Return the name of a cluster's kubeconfig Secret (SEC-01)."""
    return f"{cluster}-kubeconfig"


def server_url(endpoint: Endpoint) -> str:
    """Return the HTTPS URL of the API server at ``endpoint``."""
    # Only an IPv6 address has colons; a URL needs brackets around it.
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"https://{host}:{endpoint.port}"


def render(cluster: str, access: Access) -> bytes:
    """Return a kubeconfig with a single context; the same arguments give the same bytes."""
    user = f"{cluster}-admin"
    context = f"{user}@{cluster}"
    server: dict[str, Any] = {"server": access.server}
    if access.authority:
        server["certificate-authority-data"] = _text(access.authority)
    if access.insecure:
        server["insecure-skip-tls-verify"] = True
    credentials: dict[str, str] = {
        "client-certificate-data": _text(access.certificate),
        "client-key-data": _text(access.key),
        "token": access.token,
        "username": access.username,
        "password": access.password,
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
        "preferences": {},
        "users": [{"name": user, "user": {k: v for k, v in credentials.items() if v}}],
    }
    return msgspec.yaml.encode(document)


def digest(content: bytes) -> str:
    """Return a digest of a kubeconfig, for detecting changes."""
    return hashlib.sha256(content).hexdigest()


def parse(content: bytes) -> Access:
    """Return the server address and credentials of a kubeconfig's current context.

    Users who can write cluster Secrets must not be able to make a manager read its own files, run
    programs or connect elsewhere, so a kubeconfig must be self-contained.  Raises KubeconfigError
    for a kubeconfig that is not self-contained or is incomplete.
    """
    try:
        _check_structure(content)
        config = msgspec.yaml.decode(content, type=_Config)
    # ValueError: dates and numbers that YAML allows and Python does not.
    except (msgspec.MsgspecError, yaml.YAMLError, ValueError) as error:
        if isinstance(error, KubeconfigError):
            raise
        # The error of the parser would show the content.
        raise KubeconfigError("it is not a kubeconfig") from None
    context = _named(config.contexts, config.current_context, "context").context
    cluster = _named(config.clusters, context.cluster, "cluster").cluster
    user = _named(config.users, context.user, "user").user if context.user else _User()
    _check_self_contained(cluster, user)
    _check_credentials(user)
    if not cluster.server.startswith(("https://", "http://")):
        raise KubeconfigError("the server is not a URL")
    if cluster.server.startswith("http://"):
        # Like client-go: without TLS, anyone on the network could read the credentials.
        return Access(server=cluster.server)
    return Access(
        server=cluster.server,
        authority=_bytes(cluster.authority, "certificate-authority-data"),
        insecure=cluster.insecure,
        certificate=_bytes(user.certificate, "client-certificate-data"),
        key=_bytes(user.key, "client-key-data"),
        token=user.token,
        username=user.username,
        password=user.password,
    )


# A few hundred bytes of YAML can take hours to decode, because aliases and merge keys repeat what
# they refer to, and the C parser ends the process when it reads deep nesting.
def _check_structure(content: bytes) -> None:
    """Raise KubeconfigError for YAML that is too expensive, or unsafe, to decode."""
    depth = 0
    for number, event in enumerate(yaml.parse(content, Loader=_LOADER)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if number > _MAX_EVENTS or depth > _MAX_DEPTH:
            raise KubeconfigError("it is too large or nested too deeply")
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise KubeconfigError("it has YAML anchors, aliases or tags")


class _Cluster(msgspec.Struct):
    server: str = ""
    authority: str = msgspec.field(name="certificate-authority-data", default="")
    insecure: bool = msgspec.field(name="insecure-skip-tls-verify", default=False)
    # This field and all others of type Any are read only so that their use can be rejected.
    authority_file: Any = msgspec.field(name="certificate-authority", default=None)
    proxy: Any = msgspec.field(name="proxy-url", default=None)
    server_name: Any = msgspec.field(name="tls-server-name", default=None)


class _User(msgspec.Struct):
    certificate: str = msgspec.field(name="client-certificate-data", default="")
    key: str = msgspec.field(name="client-key-data", default="")
    token: str = ""
    username: str = ""
    password: str = ""
    certificate_file: Any = msgspec.field(name="client-certificate", default=None)
    key_file: Any = msgspec.field(name="client-key", default=None)
    token_file: Any = msgspec.field(name="tokenFile", default=None)
    exec: Any = None
    provider: Any = msgspec.field(name="auth-provider", default=None)
    impersonated: Any = msgspec.field(name="as", default=None)
    impersonated_uid: Any = msgspec.field(name="as-uid", default=None)
    impersonated_groups: Any = msgspec.field(name="as-groups", default=None)
    impersonated_extra: Any = msgspec.field(name="as-user-extra", default=None)


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster = msgspec.field(default_factory=_Cluster)


class _NamedUser(msgspec.Struct):
    name: str
    user: _User = msgspec.field(default_factory=_User)


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context = msgspec.field(default_factory=_Context)


class _Config(msgspec.Struct):
    clusters: list[_NamedCluster] = []
    contexts: list[_NamedContext] = []
    users: list[_NamedUser] = []
    current_context: str = msgspec.field(name="current-context", default="")


_Entry = TypeVar("_Entry", _NamedCluster, _NamedUser, _NamedContext)


def _named(entries: Sequence[_Entry], name: str, what: str) -> _Entry:
    # client-go refuses a kubeconfig if any name is repeated, even if nothing refers to it.
    if len({entry.name for entry in entries}) < len(entries):
        raise KubeconfigError(f"it has more than one {what} of the same name")
    for entry in entries:
        if name and entry.name == name:
            return entry
    raise KubeconfigError(f"it has no {what} of the required name")


def _check_self_contained(cluster: _Cluster, user: _User) -> None:
    refused = {
        "certificate-authority": cluster.authority_file,
        "proxy-url": cluster.proxy,
        "tls-server-name": cluster.server_name,
        "client-certificate": user.certificate_file,
        "client-key": user.key_file,
        "tokenFile": user.token_file,
        "exec": user.exec,
        "auth-provider": user.provider,
        "as": user.impersonated,
        "as-uid": user.impersonated_uid,
        "as-groups": user.impersonated_groups,
        "as-user-extra": user.impersonated_extra,
    }
    used = [name for name, value in refused.items() if value]
    if used:
        raise KubeconfigError(f"it uses unsupported settings: {', '.join(used)}")


def _check_credentials(user: _User) -> None:
    """Raise KubeconfigError for credentials that client-go refuses."""
    if user.certificate and not user.key:
        raise KubeconfigError("it has a client certificate without a key")
    if user.token and (user.username or user.password):
        raise KubeconfigError("it has both a token and a username or password")


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str, what: str) -> bytes:
    try:
        # Line breaks are allowed, as in Go.
        content = binascii.a2b_base64(text.translate(_LINE_BREAKS), strict_mode=True)
    except (binascii.Error, ValueError):
        raise KubeconfigError(f"its {what} is not base64") from None
    if len(content) > _MAX_BYTES[what]:
        raise KubeconfigError(f"its {what} has more than {_MAX_BYTES[what]} bytes")
    return content
