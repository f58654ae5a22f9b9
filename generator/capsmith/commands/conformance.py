"""conformance: drive the objects of a provider through their life in a management cluster."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from capsmith import resources
from capsmith.behaviour.checks import INFRASTRUCTURE, WHOLE_CLUSTER
from capsmith.behaviour.cluster_session import ClusterSession, provided_kind, referenced_roles
from capsmith.behaviour.contract import CoreObjects
from capsmith.behaviour.model import Report, Result, Selection, Timing
from capsmith.behaviour.objects import CORE_GROUP, TEMPLATE_NAME, provider_objects
from capsmith.behaviour.run import run_checks
from capsmith.behaviour.session import Session
from capsmith.behaviour.settings import parse_ids, parse_pairs
from capsmith.commands.conformance_input import read_manifests, read_objects
from capsmith.commands.load import all_contracts
from capsmith.conformance.bundle import Bundle
from capsmith.contract.load import load_rules
from capsmith.errors import UnreadableInput
from capsmith.management.clusterctl import Clusterctl
from capsmith.management.component import Component
from capsmith.management.kube import JSON, ApiError, KubeClient
from capsmith.management.kubeconfig_file import client_of
from capsmith.management.release import ProviderRelease, newest_version
from capsmith.management.tools import CORE_RELEASES, toolbox
from capsmith.verify.roles import roles_of
from capsmith.verify.settings import parse_role

Progress = Callable[[str], None]
_TYPE = "infrastructure"
_KUBERNETES = "v1.34.4"


class Request(NamedTuple):
    """The options of the command line, not yet parsed."""

    kubeconfig: Path | None = None
    core: str = "v1.13"
    manager: str = ""
    env: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    flavor: str = ""
    objects: Path | None = None
    apply: tuple[Path, ...] = ()
    release_version: str = ""
    roles: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    timeout: float = Timing().patience
    quiet: float = Timing().quiet
    logs: Path | None = None
    strict: bool = False


class _Provider(NamedTuple):
    """What is known of the provider before anything runs."""

    release: ProviderRelease
    component: Component
    """The infrastructure, or the first component without one."""
    roles: dict[str, str]
    """By kind."""
    contracts: dict[tuple[str, str], str]
    """The contract of a kind and API version."""


def run(
    folder: Path, request: Request, progress: Progress, done: Callable[[Result], None]
) -> Report:
    """Return the report on the release in a folder; ``done`` gets each result at once.

    Raises CapsmithError if the release cannot be read or a process fails, and ValueError for an
    option that means nothing.
    """
    provider = _provider(folder, request)
    with _scratch(request.logs) as scratch:
        if request.kubeconfig is not None:
            return _given(provider, request, scratch, done)
        return _started(provider, request, scratch, progress, done)


def _given(
    provider: _Provider, request: Request, scratch: Path, done: Callable[[Result], None]
) -> Report:
    """Check a provider that already runs in the user's management cluster."""
    if request.kubeconfig is None or request.manager:
        raise ValueError("--manager is started in a management cluster without --kubeconfig.")
    with closing(client_of(request.kubeconfig, scratch)) as client:
        documents = _documents(provider, request, lambda: _own_clusterctl(request, scratch), None)
        session = _session(provider, request, client, documents)
        for each in _prerequisites(request):
            client.apply(each)
        return _report(provider, session, request, done)


def _started(
    provider: _Provider,
    request: Request,
    scratch: Path,
    progress: Progress,
    done: Callable[[Result], None],
) -> Report:
    """Start management clusters with the provider, and check it there."""
    # Imported when it is used: it needs packages of the extra.
    try:
        from capsmith.behaviour.servers import Installation, started
    except ModuleNotFoundError as error:
        raise UnreadableInput(
            "conformance-extra",
            f"the package {error.name} is missing",
            hint="Run `pip install 'capsmith[conformance]'`, or name a cluster with --kubeconfig.",
        ) from error
    if provider.component.type != _TYPE:
        raise ValueError(f"A {provider.component.type} provider needs a --kubeconfig.")
    if not request.manager:
        raise ValueError("Name the command of the manager with --manager, or a --kubeconfig.")
    if request.core not in CORE_RELEASES:
        raise ValueError(f"--core is one of {', '.join(CORE_RELEASES)}, not {request.core}.")
    variables = parse_pairs("--variable", request.variables)
    installed = Installation(
        provider.release,
        tuple(shlex.split(request.manager)),
        parse_pairs("--env", request.env),
        (),
        variables,
        _prerequisites(request),
    )
    tools = toolbox(["k8s", f"capi-{request.core}"], progress)
    with started(tools, request.core, installed, scratch, progress) as servers:
        management = servers.first.management
        clusterctl = servers.clusterctl
        documents = _documents(provider, request, lambda: clusterctl, management.kubeconfig)
        session = _session(provider, request, management.client, documents)
        session.manager, session.mover = servers.first.manager, servers
        session.kubeconfig = management.apiserver.kubeconfig_text
        return _report(provider, session, request, done)


def _report(
    provider: _Provider, session: Session, request: Request, done: Callable[[Result], None]
) -> Report:
    rules = load_rules(resources.schemas(), session.contract)
    selection = Selection(parse_ids(request.select), parse_ids(request.ignore))
    checks = WHOLE_CLUSTER if isinstance(session, ClusterSession) else INFRASTRUCTURE
    results = run_checks(session, checks, rules, selection, done)
    return Report(provider.component.label, session.contract, results, request.strict)


def _provider(folder: Path, request: Request) -> _Provider:
    version = request.release_version or newest_version(folder)
    release = ProviderRelease(folder, version)
    component = release.components[0] if release.components else release.component(_TYPE)
    parts = (component,) if component.type == _TYPE else release.components
    manifests = [each for part in parts for each in read_manifests(folder / part.file)]
    known = sorted({role for contract in all_contracts() for role in contract.types})
    given = dict(parse_role(text, known) for text in request.roles)
    bundle = Bundle(tuple(manifests), given)
    by_name = roles_of(bundle, given)
    return _Provider(
        release,
        component,
        {crd.kind: by_name[crd.manifest.name] for crd in bundle.crds},
        {
            (crd.kind, version): contract.version
            for contract in all_contracts()
            for crd in bundle.crds
            for version in crd.labelled(contract.label)
        },
    )


def _session(
    provider: _Provider, request: Request, client: KubeClient, documents: list[JSON]
) -> Session:
    timing = Timing(request.timeout, request.quiet, request.timeout)
    if provider.component.type == _TYPE:
        objects = provider_objects(documents, provider.roles)
        machine = (objects.machine_kind, objects.machine_version)
        version = _require_installed(
            client, (objects.cluster_kind, objects.cluster_version), machine
        )
        core = CoreObjects(version, _namespace(provider))
        return Session(client, core, objects, _contract(provider, *machine), timing)
    roles = provider.roles | referenced_roles(documents)
    provided = provided_kind(documents, provider.roles)
    return ClusterSession(
        client,
        CoreObjects(_require_installed(client, provided), _namespace(provider)),
        provider_objects(documents, roles),
        _contract(provider, *provided),
        timing,
        documents=tuple(documents),
        roles=roles,
    )


def _require_installed(client: KubeClient, *kinds: tuple[str, str]) -> str:
    """Return the version of core's API; raises UnreadableInput without core or one of the kinds.

    Kinds are given with their API versions.
    """
    try:
        for kind, api_version in kinds:
            client.resolve(api_version, kind)
        return client.preferred_version(CORE_GROUP).rpartition("/")[2]
    except (ApiError, LookupError, OSError, HTTPException) as error:
        raise UnreadableInput(
            "conformance-not-installed",
            f"core or the provider does not run in the management cluster: {error}",
            hint="Install both with clusterctl init, or start them with --manager.",
        ) from error


def _namespace(provider: _Provider) -> str:
    return f"conformance-{provider.component.name}"[:63].rstrip("-")


def _contract(provider: _Provider, kind: str, api_version: str) -> str:
    key = (kind, api_version.rpartition("/")[2])
    if key not in provider.contracts:
        raise UnreadableInput(
            "conformance-contract",
            f"no contract label of {key[0]} names version {key[1]}",
            file=str(provider.release.folder),
            hint="Run capsmith verify first.",
        )
    return provider.contracts[key]


def _documents(
    provider: _Provider,
    request: Request,
    clusterctl: Callable[[], Clusterctl],
    kubeconfig: Path | None,
) -> list[JSON]:
    """Return the objects of a cluster: those of a file, or of the generated template."""
    if request.objects is not None:
        return read_objects(request.objects)
    flavor = f"-{request.flavor}" if request.flavor else ""
    template = provider.release.folder / f"cluster-template{flavor}.yaml"
    if not template.is_file():
        raise UnreadableInput(
            "conformance-template",
            "there is no such cluster template",
            file=str(template),
            hint="Name objects with --objects, or another --flavor.",
        )
    options = {
        "from": template.resolve(),
        "kubernetes-version": _KUBERNETES,
        "control-plane-machine-count": 1,
        "worker-machine-count": 1,
        "target-namespace": _namespace(provider),
    }
    file = kubeconfig or request.kubeconfig
    if file is None:
        raise ValueError("--kubeconfig is missing.")
    variables = parse_pairs("--variable", request.variables)
    return clusterctl().generate(file, TEMPLATE_NAME, options, variables)


def _own_clusterctl(request: Request, scratch: Path) -> Clusterctl:
    """Return the clusterctl on PATH, or build one."""
    config = scratch / "clusterctl.yaml"
    config.write_text("providers: []\n")
    found = shutil.which("clusterctl")
    if found is not None:
        return Clusterctl.installed(Path(found), config, scratch)
    tools = toolbox([f"capi-{request.core}"])
    return Clusterctl(tools, request.core, config, scratch)


def _prerequisites(request: Request) -> list[JSON]:
    return [document for path in request.apply for document in read_objects(path)]


@contextmanager
def _scratch(logs: Path | None) -> Iterator[Path]:
    """Yield a private folder for logs and credentials, which stays only if the user names it."""
    if logs is not None:
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield logs.resolve()
        return
    ignore = sys.platform == "win32"
    with tempfile.TemporaryDirectory(prefix="capsmith-", ignore_cleanup_errors=ignore) as folder:
        yield Path(folder)
