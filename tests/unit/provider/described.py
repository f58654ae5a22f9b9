"""Providers that are resolved from descriptions."""

from __future__ import annotations

import json
from typing import Any

from capsmith.provider.model import Provider, Resource
from capsmith.provider_yaml.parse import parse
from capsmith.resolving.resolve import resolve
from tests.invalid.cases import CONTRACTS, EXAMPLES

BASE: dict[str, Any] = {
    "capsmith": 1,
    "name": "acme",
    "repository": "https://github.com/acme/cluster-api-provider-acme",
    "contracts": ["v1beta2"],
    "releases": {"v0.1": "v1beta2"},
    "infrastructure": {
        "AcmeCluster": {"implements": "InfraCluster"},
        "AcmeMachine": {"implements": "InfraMachine"},
    },
}


def resolved(data: dict[str, Any]) -> Provider | None:
    parsed = parse(json.dumps(data), "provider.yaml")
    if parsed.spec is None or parsed.document is None:
        return None
    return resolve(parsed.spec, parsed.document, CONTRACTS).provider


def provider(**changes: Any) -> Provider:
    made = resolved({**BASE, **changes})
    assert made is not None
    return made


def example(name: str) -> Provider:
    parsed = parse((EXAMPLES / name / "provider.yaml").read_text(encoding="utf-8"), "provider.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    made = resolve(parsed.spec, parsed.document, CONTRACTS).provider
    assert made is not None
    return made


def resource(made: Provider, kind: str) -> Resource:
    return next(resource for resource in made.resources if resource.kind == kind)
