"""What a real API server says of the CRDs of ``tests/mutation/seeds.yaml``.

``python -m tests.realapi.seed_verdicts`` starts one server for all of them, and records in
``seed_verdicts.yaml`` which server refused what for each rule.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer, Etcd
from tests.e2e.tools.required import required_toolbox
from tests.mutation.seeds import Seeded, seed_all
from tests.realapi.crd_verdicts import RULES, find_refusal

RECORD = Path(__file__).with_name("seed_verdicts.yaml")
_HEADER = (
    "# Written by `python -m tests.realapi.seed_verdicts`: by rule, what a real part refused.\n"
)


class Refusal(NamedTuple):
    """The API server's answer to the CRD of a release with one mistake."""

    seeded: Seeded
    message: str
    """Why the server refuses the CRD; empty if it takes it."""


def list_seeded_crds() -> list[Seeded]:
    """Return the releases with mistakes that the rules on the validity of CRDs find."""
    return [each for each in seed_all() if each.mistake.rules & set(RULES) and _crd(each)]


def ask(api: KubeClient, seeded: Iterable[Seeded]) -> Iterator[Refusal]:
    """Yield the server's answer to the changed CRD of each release; nothing is stored."""
    for each in seeded:
        yield Refusal(each, find_refusal(api, _crd(each)))


def _crd(seeded: Seeded) -> dict[str, Any]:
    """Return the changed CRD; empty if the mistake is in another object or in the text."""
    name = "CustomResourceDefinition"
    changed = seeded.mistake.data
    if changed["in"].get("kind") != name or "text" in changed or "remove" in changed:
        return {}
    (documents,) = seeded.files.values()
    (number,) = (n for n, each in enumerate(documents) if _is_changed(seeded, n, each))
    found = documents[number]
    return found if isinstance(found, dict) else {}


def _is_changed(seeded: Seeded, number: int, document: object) -> bool:
    (file,) = seeded.files
    return document is not seeded.original[file][number]


def summarise(version: str, refusals: Iterable[Refusal]) -> dict[str, Any]:
    """Return the record: by rule, the server, how many it refused, and one of its messages."""
    record: dict[str, Any] = {}
    for each in refusals:
        for rule in sorted(each.seeded.mistake.rules & set(RULES)) if each.message else ():
            entry = record.setdefault(rule, {"part": f"kube-apiserver {version}", "refused": 0})
            entry["refused"] += 1
            # Some messages repeat the whole CRD: the shortest one says most.
            if len(each.message) < len(entry.get("message", each.message + " ")):
                entry |= {"mistake": each.seeded.name, "message": each.message}
    return dict(sorted(record.items()))


def main() -> None:
    """Start a server, ask it, and write the record; print what the server takes."""
    tools = required_toolbox("the mistakes in CRDs", ["k8s"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        etcd = Etcd(tools, folder / "etcd")
        server = ApiServer(tools, Pki(folder / "pki"), etcd, folder / "server", "seeds")
        etcd.start()
        try:
            server.start()
            refusals = list(ask(server.client, list_seeded_crds()))
            version = str(server.client.request("GET", "/version")["gitVersion"])
        finally:
            server.stop()
            etcd.stop()
    taken = [each.seeded.name for each in refusals if not each.message]
    text = yaml.safe_dump(summarise(version, refusals), sort_keys=False, width=100)
    RECORD.write_text(_HEADER + text, encoding="utf-8")
    print(f"{len(refusals)} CRDs, {len(refusals) - len(taken)} refused")
    for each in taken:
        print(f"taken: {each}")
    for refusal in refusals:
        # The server could not even decode it, which may hide the mistake itself.
        if "cannot be handled" in refusal.message:
            print(f"not decoded: {refusal.seeded.name}: {refusal.message}")


if __name__ == "__main__":
    main()
