"""Load a provider.yaml: return a resolved provider, or findings."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from capsmith import __version__, resources
from capsmith.contract import load as contract_files
from capsmith.contract.compatibility import Compatibility, load_compatibility
from capsmith.contract.model import Contract
from capsmith.findings import Finding
from capsmith.workspace.cache import FolderCache
from capsmith.workspace.reading import read_document

if TYPE_CHECKING:
    from capsmith.blueprint.overlay import Overlay
    from capsmith.provider.draft import Draft
    from capsmith.provider.model import Provider
    from capsmith.yamldoc.document import Document


_NO_SPEC = "Check the path, or run `capsmith new` to write a first provider.yaml."


class Loaded(NamedTuple):
    """A provider.yaml after loading. ``provider`` is None if any finding is an error."""

    text: str
    provider: Provider | None
    findings: tuple[Finding, ...]
    blueprints: str = ""
    """Path to the overlay folder named in provider.yaml; empty if none is named."""
    overlay: Overlay | None = None
    document: Document | None = None
    """The parsed YAML of provider.yaml; None if it does not match the model."""
    draft: Draft | None = None


class ContractData(NamedTuple):
    """The contract versions and supported releases that ship with capsmith."""

    contracts: tuple[Contract, ...]
    """All contract versions, oldest first. Parts of their data may be read only when first used."""
    supported: Compatibility
    """Supported releases of core, Kubernetes and Python."""


def load_contracts() -> tuple[Contract, ...]:
    """Return all contract versions that capsmith knows, oldest first.

    All calls return the same objects.
    """
    return load_contract_data().contracts


@cache
def load_contract_data() -> ContractData:
    """Return the data in capsmith's schemas folder, from the user's cache if possible.

    Reading and validating the files takes longer than the rest of most commands.
    """
    schemas, user = resources.schemas(), FolderCache.of_user()
    fingerprint = resources.compute_fingerprint() if user is not None else None
    if user is None or fingerprint is None:
        return ContractData(contract_files.load_contracts(schemas), load_compatibility(schemas))
    key = f"contract-data-{__version__}-{fingerprint}"
    content = user.get(key)
    if content is not None:
        recalled: ContractData = pickle.loads(content)
        return recalled
    contracts = map(contract_files.load_lazy_parts, contract_files.load_contracts(schemas))
    loaded = ContractData(tuple(contracts), load_compatibility(schemas))
    user.put(key, pickle.dumps(loaded, pickle.HIGHEST_PROTOCOL))
    return loaded


def load(path: Path, blueprints: Path | None = None) -> Loaded:
    """Read, parse and resolve a provider.yaml and its overlay.

    ``blueprints`` is the path to an overlay that provider.yaml does not name.  Raises
    UnreadableInput if the file cannot be read or the overlay's folder does not exist.
    """
    loaded = load_text(read_document(path, absent=_NO_SPEC), str(path))
    if blueprints is None and not loaded.blueprints:
        return loaded
    # Imported here because few providers have an overlay, and reading one is slow to import.
    from capsmith.commands.overlay import find_overlay

    overlay, findings = find_overlay(path, loaded.blueprints, blueprints)
    return loaded._replace(findings=(*loaded.findings, *findings), overlay=overlay)


def load_text(text: str, file: str) -> Loaded:
    """Parse and resolve the content of a provider.yaml. ``file`` is the name to use in findings.

    Invalid content does not raise an exception: in this case, the result has findings and no
    provider.
    """
    # Imported here because `verify` and others only need contracts, and the model of provider.yaml
    # takes a sixth of their time.
    from capsmith.provider_yaml.parse import parse
    from capsmith.resolving.resolve import link_rules, resolve

    contracts = {contract.version: contract for contract in load_contracts()}
    parsed = parse(text, file)
    if parsed.spec is None or parsed.document is None:
        return Loaded(text, None, link_rules(parsed.findings, contracts))
    resolved = resolve(parsed.spec, parsed.document, contracts)
    findings = link_rules((*parsed.findings, *resolved.findings), contracts)
    return Loaded(
        text,
        resolved.provider,
        findings,
        blueprints=parsed.spec.blueprints or "",
        document=parsed.document,
        draft=resolved.draft,
    )
