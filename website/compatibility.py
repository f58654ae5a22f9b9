"""The page of the releases with which capsmith is used, from ``schemas/compatibility.yaml``."""

from __future__ import annotations

from capsmith import resources
from capsmith.contract.compatibility import Project, Supported, load_compatibility
from capsmith.contract.model import ReleaseTesting
from capsmith.judge.release.targets import list_targets

_HEAD = """# Compatibility

Which releases the tests of capsmith run, and where.  The default of `--core`, the servers of
`capsmith lab` and the Kubernetes version of samples are the newest that each change is tested with.
`capsmith verify --target` knows all releases of core below; what it says of those that are not run
is read from their source.

clusterctl upgrades core by at most three minor releases in one command: from {oldest} to
{newest} by way of {between}.
"""
_RUNS = {
    ReleaseTesting.CI: "all tests, each change",
    ReleaseTesting.SHORT: "the life of a cluster, each change; all tests, every night",
    ReleaseTesting.NIGHTLY: "all tests, every night",
    ReleaseTesting.SOURCE: "not run; read from source",
}
_CONTRACTS = {("v1beta1",): "v1beta1", ("v1beta2", "v1beta1"): "v1beta2, and v1beta1 until its end"}


def compatibility_page() -> str:
    """Return the page."""
    table = load_compatibility(resources.schemas())
    targets = list_targets(table.core)
    contracts = {
        each: _CONTRACTS[core.contracts]
        for each, core in zip(table.core.releases, targets.known, strict=True)
    }
    executed = [each.series for each in table.core.executed]
    head = _HEAD.format(oldest=executed[0], newest=executed[-1], between=", ".join(executed[1:-1]))
    parts = [
        head,
        _section("Cluster API core and clusterctl", table.core, contracts),
        _section("Kubernetes of management clusters", table.kubernetes),
        _section("cert-manager", table.cert_manager),
        _section("Python, of capsmith and of generated repositories", table.python),
    ]
    return "\n".join(parts)


def _section(title: str, project: Project, contracts: dict[Supported, str] | None = None) -> str:
    extra = ["Contract"] if contracts else []
    rows = [["Release", *extra, "Tests", "Note"]]
    rows.append(["---"] * len(rows[0]))
    for each in reversed(project.releases):
        contract = [contracts[each]] if contracts else []
        rows.append([each.release, *contract, _RUNS[each.run], each.note or "-"])
    return "\n".join([f"## {title}", "", *(f"| {' | '.join(row)} |" for row in rows), ""])
