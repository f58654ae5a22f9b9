"""Runtime extensions: how core finds them."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.parse import mapping_of, text_of


@check("extension-config")
def extension_config(context: Context) -> Iterator[Problem]:
    """RX-01: an ExtensionConfig names exactly one way to reach the server, and by TLS."""
    for manifest in context.bundle.of("ExtensionConfig"):
        client = manifest.mapping("spec", "clientConfig")
        ways = [key for key in ("url", "service") if client.get(key)]
        if len(ways) != 1:
            yield Problem(
                manifest,
                f"{manifest}: spec.clientConfig has {' and '.join(ways) or 'neither'}; "
                "expected one of url, service",
                path=("spec", "clientConfig"),
            )
        url = text_of(client, "url")
        if url and not url.startswith("https://"):
            yield Problem(
                manifest,
                f"{manifest}: {url!r} is not an https URL",
                path=("spec", "clientConfig", "url"),
            )
        service = mapping_of(client, "service")
        missing = [key for key in ("namespace", "name") if not text_of(service, key)]
        if service and missing:
            yield Problem(
                manifest,
                f"{manifest}: spec.clientConfig.service has no {', '.join(missing)}",
                path=("spec", "clientConfig", "service"),
            )
