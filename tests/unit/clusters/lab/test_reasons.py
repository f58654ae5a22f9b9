"""Each reason that the runtime sets is either an error's or a wait's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import capsmith_runtime
from capsmith.clusters.lab.objects import find_blocker
from tests.unit.clusters.lab.objects import condition

RUNTIME = Path(capsmith_runtime.__file__).parent
RAISED = {"Waiting", "ReconcileError", "TerminalError"}
ERRORS = {
    "AccountChanged",
    "AllocationFailed",
    "CertificatesNotUsable",
    "ClusterNotFound",
    "ClusterUnreachable",
    "ContractVersionNotFound",
    "DataSecretNameTaken",
    "ExternalIDTaken",
    "IdentityChainInvalid",
    "IdentityNotAllowed",
    "IdentityNotFound",
    "InfraClusterNotFound",
    "InternalError",
    "InvalidResult",
    "InvalidSpec",
    "KubeconfigNotUsable",
    "KubernetesAlreadyExists",
    "KubernetesObjectNotFound",
    "KubernetesRequestFailed",
    "KubernetesRequestForbidden",
    "KubernetesRequestInvalid",
    "PermissionNotDeclared",
    "PoolExhausted",
    "ProviderIDChanged",
    "ProviderIDTaken",
    "SecretIncomplete",
    "SecretNotFound",
    "SessionNotOpened",
    "TooManyInstances",
}
WAITS = {
    "AddressesInUse",
    "CacheIsEmpty",
    "CacheIsStale",
    "ClusterDeleting",
    "ClusterMissing",
    "Deleting",
    "KubernetesConflict",
    "NotPaused",
    "NotReady",
    "Paused",
    "Pending",
    "PoolNotReady",
    "RateLimited",
    "Ready",
    "Removed",
    "Removing",
    "RemovingLeftovers",
    "SessionExpired",
    "TerminationHeld",
    "WaitingForBootstrapData",
    "WaitingForCertificates",
    "WaitingForClusterInfrastructureReady",
    "WaitingForControlPlaneEndpoint",
    "WaitingForControlPlaneInitialized",
    "WaitingForIPAddress",
    "WaitingForKubeconfig",
    "WaitingForRemediation",
}


def list_reasons(tree: ast.AST) -> Iterator[str]:
    """Yield reasons from constants, from defaults, and from results and errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names = [each.id for each in targets if isinstance(each, ast.Name)]
            is_reason = any(
                name.startswith("REASON_") or name == "default_reason" for name in names
            )
            value = node.value if is_reason else None
        elif isinstance(node, ast.arguments):
            defaults = zip(node.kwonlyargs, node.kw_defaults, strict=True)
            value = next((default for each, default in defaults if each.arg == "reason"), None)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            value = node.args[0] if node.func.id in RAISED else None
        else:
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
            yield value.value


def read_reasons() -> set[str]:
    paths = [path for path in RUNTIME.rglob("*.py") if "testing" not in path.parts]
    return {each for path in paths for each in list_reasons(ast.parse(path.read_text("utf-8")))}


def test_each_reason_of_the_runtime_is_decided() -> None:
    """A new reason has to be added to one of the two sets."""
    assert not ERRORS & WAITS
    assert read_reasons() == ERRORS | WAITS


@pytest.mark.parametrize("reason", sorted(ERRORS | WAITS))
def test_a_reason_of_the_runtime_is_shown_as_decided(reason: str) -> None:
    blocker = find_blocker({"status": {"conditions": [condition("Ready", "False", reason=reason)]}})
    assert blocker is not None
    assert blocker.is_error is (reason in ERRORS)


@pytest.mark.parametrize("reason", ["AWSUnreachable", "UnknownFormat", "BootstrapDataTooLong"])
def test_errors_of_the_examples_are_shown_as_such(reason: str) -> None:
    blocker = find_blocker({"status": {"conditions": [condition("Ready", "False", reason=reason)]}})
    assert blocker is not None
    assert blocker.is_error


@pytest.mark.parametrize("reason", ["ReadyUnknown", "NotReachableYet", "CloningAnImage"])
def test_other_reasons_are_waits(reason: str) -> None:
    blocker = find_blocker({"status": {"conditions": [condition("Ready", "False", reason=reason)]}})
    assert blocker is not None
    assert not blocker.is_error
