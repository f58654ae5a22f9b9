"""Find errors for which kubectl refuses a kubeconfig: wrong types, and settings that contradict.

Messages never show a value, because any of them may be a credential.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.manifests.parse import list_of, mapping_of, text_of

# Source: k8s.io/client-go/tools/clientcmd/api/v1. `bytes` is a string in base64.
_EXTENSIONS = [{"name": str}]
_EXEC: Mapping[str, Any] = {
    "command": str,
    "args": [str],
    "env": [{"name": str, "value": str}],
    "apiVersion": str,
    "installHint": str,
    "provideClusterInfo": bool,
    "interactiveMode": str,
}
_CLUSTER: Mapping[str, Any] = {
    "server": str,
    "tls-server-name": str,
    "insecure-skip-tls-verify": bool,
    "certificate-authority": str,
    "certificate-authority-data": bytes,
    "proxy-url": str,
    "disable-compression": bool,
    "extensions": _EXTENSIONS,
}
_USER: Mapping[str, Any] = {
    "client-certificate": str,
    "client-certificate-data": bytes,
    "client-key": str,
    "client-key-data": bytes,
    "token": str,
    "tokenFile": str,
    "as": str,
    "as-uid": str,
    "as-groups": [str],
    "as-user-extra": {},
    "username": str,
    "password": str,
    "auth-provider": {"name": str},
    "exec": _EXEC,
    "extensions": _EXTENSIONS,
}
_CONTEXT: Mapping[str, Any] = {
    "cluster": str,
    "user": str,
    "namespace": str,
    "extensions": _EXTENSIONS,
}
_CONFIG: Mapping[str, Any] = {
    "apiVersion": str,
    "kind": str,
    "preferences": {},
    "clusters": [{"name": str, "cluster": _CLUSTER}],
    "users": [{"name": str, "user": _USER}],
    "contexts": [{"name": str, "context": _CONTEXT}],
    "current-context": str,
    "extensions": _EXTENSIONS,
}
_WORDS = {str: "a string", bytes: "a string", bool: "true or false"}
_LINE_BREAKS = dict.fromkeys(map(ord, "\r\n"))
_MODES = ("Never", "IfAvailable", "Always")


def explain_content(config: Mapping[str, Any]) -> str:
    """Return the first reason why kubectl refuses a whole kubeconfig; empty if there is none."""
    problem = next(_find_wrong_types(config, _CONFIG, ""), "")
    if problem:
        return problem
    if text_of(config, "kind") not in ("", "Config"):
        return f"its kind is {text_of(config, 'kind')!r}, not 'Config'"
    if text_of(config, "apiVersion") not in ("", "v1"):
        return f"its apiVersion is {text_of(config, 'apiVersion')!r}, not 'v1'"
    return ""


def explain_entries(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> str:
    """Return why kubectl refuses to use this cluster and user; empty if it does not."""
    for entry, key in (
        (cluster, "certificate-authority"),
        (user, "client-certificate"),
        (user, "client-key"),
    ):
        if entry.get(key) and entry.get(f"{key}-data"):
            return f"`{key}` and `{key}-data` are both set"
    if _has(user, "client-certificate") and not _has(user, "client-key"):
        return "the user has a client certificate without a key"
    return _explain_exec(mapping_of(user, "exec"))


def decode(data: str) -> bytes:
    """Return what base64 text denotes, which may have line breaks, as in Go.

    Raises ValueError if it is invalid.
    """
    return binascii.a2b_base64(data.translate(_LINE_BREAKS), strict_mode=True)


def _find_wrong_types(value: Any, declared: Any, path: str) -> Iterator[str]:
    # Like Go, read null as no value.
    if value is None:
        return
    if isinstance(declared, Mapping):
        if isinstance(value, dict):
            for key, below in declared.items():
                yield from _find_wrong_types(value.get(key), below, f"{path}.{key}".lstrip("."))
        else:
            yield f"{path} is not a mapping"
    elif isinstance(declared, list):
        if isinstance(value, list):
            for number, item in enumerate(value):
                yield from _find_wrong_types(item, declared[0], f"{path}[{number}]")
        else:
            yield f"{path} is not a list"
    elif not isinstance(value, str if declared is bytes else declared):
        yield f"{path} is not {_WORDS[declared]}"
    elif declared is bytes and not _is_base64(value):
        yield f"{path} is not valid base64"


def _is_base64(text: str) -> bool:
    try:
        decode(text)
    except ValueError:
        return False
    return True


def _has(user: Mapping[str, Any], key: str) -> bool:
    return bool(user.get(key) or user.get(f"{key}-data"))


def _explain_exec(config: Mapping[str, Any]) -> str:
    if not config:
        return ""
    if not text_of(config, "command"):
        return "exec of the user has no command"
    if any(not text_of(entry, "name") for entry in list_of(config, "env")):
        return "exec of the user has an environment variable without a name"
    mode = text_of(config, "interactiveMode")
    # The older version has a default, IfAvailable.
    if mode not in _MODES and (mode or text_of(config, "apiVersion").endswith("/v1")):
        return f"interactiveMode of `exec` is {mode!r}, not one of {', '.join(_MODES)}"
    return ""
