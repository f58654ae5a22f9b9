"""Address and credentials of the API server, as lightkube reads them."""

from __future__ import annotations

import os
import socket

import httpx2
from lightkube import ConfigError, KubeConfig, SingleConfig
from lightkube.config.client_adapter import user_auth
from lightkube.config.models import User

from capsmith_runtime.kube.tls import api_server_context

# With keep-alive the kernel detects a peer that has vanished, without any request.
_KEEPALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
]


def load_config() -> SingleConfig:
    """Load the configuration: the file in KUBECONFIG, else in-cluster, else the user's default."""
    path = os.environ.get("KUBECONFIG")
    config = (KubeConfig.from_file(path) if path else KubeConfig.from_env()).get()
    if config is None:
        raise ConfigError("the kubeconfig has no current context")
    return config


def open_session(config: SingleConfig, user_agent: str) -> httpx2.AsyncClient:
    """Return a connection pool with the current credentials."""
    user = config.user or User()
    transport = httpx2.AsyncHTTPTransport(
        verify=api_server_context(config),
        limits=httpx2.Limits(
            max_connections=None, max_keepalive_connections=32, keepalive_expiry=30.0
        ),
        socket_options=_KEEPALIVE,
    )
    headers = {
        "Accept": "application/json",
        # Inside a cluster, compression costs more than it saves.
        "Accept-Encoding": "identity",
        "User-Agent": user_agent,
    }
    return httpx2.AsyncClient(
        base_url=config.cluster.server, auth=user_auth(user), headers=headers, transport=transport
    )
