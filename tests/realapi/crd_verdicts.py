"""Compare what ``capsmith verify`` says of changed CRDs with a real API server.

``python -m tests.realapi.crd_verdicts --count 500`` starts a server and prints what differs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from capsmith import resources
from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer, Etcd
from capsmith.contract.load import load_contract
from capsmith.contract.model import Contract
from capsmith.judge.checks.evaluate import find_violations
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.parse import Manifest
from tests.e2e.tools.required import required_toolbox
from tests.realapi.crd_mutants import Mutant, make_mutants

RULES = ("CRD-23", "CRD-24", "CRD-25", "CRD-26")
"""The rules on what the API server refuses in a CRD."""
DRY_RUN = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
_EXPLAINED = Path(__file__).with_name("crd_verdicts.yaml")


class Verdict(NamedTuple):
    """Both verdicts on a changed CRD."""

    mutant: Mutant
    refusal: str
    """Message of the API server; empty if it takes the CRD."""
    findings: tuple[str, ...]
    """Messages of ``verify``."""

    @property
    def is_same(self) -> bool:
        """Return whether both take the CRD or both refuse it."""
        return bool(self.refusal) == bool(self.findings)

    @property
    def is_explained(self) -> bool:
        """Return whether ``crd_verdicts.yaml`` says why only the server refuses the CRD."""
        known = not self.findings and any(text in self.refusal for text in load_explained())
        return self.is_same or known

    def __str__(self) -> str:
        return f"{self.mutant.text}\n  server: {self.refusal!r}\n  verify: {self.findings}"


@cache
def load_explained() -> dict[str, str]:
    """Return the reasons for known differences, by a part of the server's message."""
    loaded: dict[str, str] = yaml.safe_load(_EXPLAINED.read_text(encoding="utf-8"))
    return loaded


@cache
def _contract() -> Contract:
    return load_contract("v1beta2", resources.schemas())


def compare(api: KubeClient, mutants: Iterable[Mutant]) -> list[Verdict]:
    """Return both verdicts on each changed CRD; nothing is stored in the server."""
    return [
        Verdict(each, find_refusal(api, each.document), find_messages(each.document))
        for each in mutants
    ]


def find_refusal(api: KubeClient, document: dict[str, Any]) -> str:
    """Return why the API server refuses a CRD; empty if it takes it."""
    try:
        api.request("POST", DRY_RUN, body=document)
    except ApiError as error:
        return error.message or str(error)
    except HTTPException as error:
        # Some CRDs make the validation panic, and the server closes the connection.
        return f"no response: {error}"
    return ""


def find_messages(document: dict[str, Any]) -> tuple[str, ...]:
    """Return what ``verify`` says of a CRD by the rules on its validity."""
    bundle = Bundle((Manifest("infrastructure-components.yaml", 1, document),), {})
    rules = [_contract().rules[id] for id in RULES]
    return tuple(v.message for r in rules for v in find_violations(r, bundle, _contract()))


def main() -> None:
    """Start a server, compare, and print the differences and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tools = required_toolbox("the comparison with a real API server", ["k8s"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        etcd = Etcd(tools, folder / "etcd")
        server = ApiServer(tools, Pki(folder / "pki"), etcd, folder / "server", "verdicts")
        etcd.start()
        try:
            server.start()
            verdicts = compare(server.client, make_mutants(options.count, options.seed))
        finally:
            server.stop()
            etcd.stop()
    for verdict in verdicts:
        if not verdict.is_explained:
            print(verdict)
    counts = Counter(
        "same" if v.is_same else "explained" if v.is_explained else "different" for v in verdicts
    )
    refused = sum(bool(verdict.refusal) for verdict in verdicts)
    print(f"{len(verdicts)} CRDs, {refused} refused by the server: {dict(counts)}")


if __name__ == "__main__":
    main()
