"""Flags for webhook servers, named as in Cluster API's own managers (MG-04)."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from capsmith_runtime.kube.tls import DEFAULT_TLS, TLSOptions
from capsmith_runtime.options import Options, parse_duration

CERTIFICATES: Final = "/tmp/k8s-webhook-server/serving-certs/"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """The server's address, its certificate, and the URL that core uses."""

    host: str = ""
    """Host name or IP address to listen on, or an empty string for all interfaces."""
    port: int = 9443
    certificates: Path = Path(CERTIFICATES)
    certificate: str = "tls.crt"
    key: str = "tls.key"
    client_authority: str = ""
    """Path to the CA certificate for verifying client certificates, empty if clients need none."""
    url: str = ""
    """URL at which core calls the server, or an empty string to call it through the Service."""
    shutdown_delay: float = 5.0
    """Seconds for which a stopping manager still serves, until Services stop using it."""
    tls: TLSOptions = DEFAULT_TLS


class WebhookFlags:
    """Adds the command-line flags of webhook servers, such as ``--webhook-port``."""

    name = "webhook"

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags to the parser."""
        add = parser.add_argument
        add("--webhook-host", default="", help="address to listen on; all when empty")
        add("--webhook-port", default=9443, type=_port, help="port to listen on")
        add("--webhook-cert-dir", default=Path(CERTIFICATES), type=Path, metavar="DIR")
        add("--webhook-cert-name", default="tls.crt", metavar="FILE", help="certificate, in DIR")
        add("--webhook-key-name", default="tls.key", metavar="FILE", help="its key, in DIR")
        add(
            "--webhook-client-ca-name",
            default="",
            metavar="FILE",
            help="CA certificates of the clients that may call, in DIR",
        )
        add(
            "--webhook-url",
            default="",
            type=_url,
            help="URL at which core reaches the server instead of a Service",
        )
        delay = "how long a stopping manager keeps serving"
        add("--webhook-shutdown-delay", default=5.0, type=parse_duration, help=delay)

    def read(self, arguments: argparse.Namespace) -> WebhookOptions:
        """Return the webhook options from the parsed arguments."""
        return WebhookOptions(
            host=arguments.webhook_host,
            port=arguments.webhook_port,
            certificates=arguments.webhook_cert_dir,
            certificate=arguments.webhook_cert_name,
            key=arguments.webhook_key_name,
            client_authority=arguments.webhook_client_ca_name,
            url=arguments.webhook_url,
            shutdown_delay=arguments.webhook_shutdown_delay,
        )


WEBHOOK: Final = WebhookFlags()


def webhook_options(options: Options) -> WebhookOptions:
    """Return a manager's webhook options, or the defaults if it has none."""
    webhook = options.extra.get(WEBHOOK.name)
    found = webhook if isinstance(webhook, WebhookOptions) else WebhookOptions()
    return replace(found, tls=options.tls)


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 0xFFFF:
        raise ValueError(f"not a port: {text!r}")
    return number


def _url(text: str) -> str:
    if text and urlsplit(text).scheme != "https":
        raise ValueError(f"core only calls extensions over https: {text!r}")
    return text
