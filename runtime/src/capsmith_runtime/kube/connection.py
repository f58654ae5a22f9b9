"""Address, credentials and TLS for the API servers of management and workload clusters.

lightkube reads the configuration.  No other module of this package creates a TLS context for an API
server, and none uses Python's default context.
"""

from __future__ import annotations

import os
import socket
import ssl

import httpx2
from lightkube import ConfigError as ConfigError
from lightkube import KubeConfig, SingleConfig
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.models import User

# With keep-alive, the kernel detects that a peer has vanished, even if no request is sent.
_KEEPALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
]


def load_config() -> SingleConfig:
    """Return the configuration: from KUBECONFIG, else in-cluster, else the user's default file.

    Raises ConfigError with a one-line message if there is no configuration, or if it cannot be
    read.
    """
    path = os.environ.get("KUBECONFIG")
    try:
        config = (KubeConfig.from_file(path) if path else KubeConfig.from_env()).get()
    # lightkube does not validate its input: malformed YAML or a wrong type may raise any exception.
    except Exception as error:
        name = "" if isinstance(error, ConfigError) else f"{type(error).__name__}: "
        message = " ".join(f"{name}{error}".split())
        raise ConfigError(f"cannot read {path or 'a kubeconfig'}: {message}") from error
    if config is None:
        raise ConfigError(f"{path or 'the kubeconfig'} has no current context")
    return config


def open_session(config: SingleConfig, user_agent: str) -> httpx2.AsyncClient:
    """Open an HTTP connection pool that uses the current credentials.

    Raises ConfigError if the server's address is not a URL.
    """
    user = config.user or User()
    transport = httpx2.AsyncHTTPTransport(
        verify=create_api_server_context(config),
        limits=httpx2.Limits(
            # No limit: each watch holds a connection for minutes, and a full pool would block the
            # renewal of the lease.
            max_connections=None,
            max_keepalive_connections=32,
            keepalive_expiry=30.0,
        ),
        socket_options=_KEEPALIVE,
    )
    headers = {
        "Accept": "application/json",
        # Inside a cluster, compression costs more than it saves, except for long lists.
        "Accept-Encoding": "identity",
        "User-Agent": user_agent,
    }
    try:
        server = httpx2.URL(config.cluster.server)
    except httpx2.InvalidURL:
        # Its text shows a part of the address, which may contain a password.
        raise ConfigError("the server is not a URL") from None
    return httpx2.AsyncClient(
        base_url=server, auth=user_auth(user), headers=headers, transport=transport
    )


def create_api_server_context(config: SingleConfig) -> ssl.SSLContext:
    """Create a TLS context that verifies the API server's chain, dates and name as Go does.

    Raises OSError or ValueError if a certificate or key cannot be read.
    """
    context = verify_cluster(config.cluster, config.user or User(), config.abs_file)
    # Python 3.13 made this flag a default (https://docs.python.org/3.13/library/ssl.html,
    # ssl.create_default_context).  It rejects certificates without key identifiers, such as those
    # of EKS (https://github.com/kubernetes-client/python/issues/2394), and authorities without key
    # usage. kubectl and core accept them, so a manager has to accept them as well.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
