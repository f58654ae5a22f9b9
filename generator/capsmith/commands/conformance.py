"""The command `conformance`: check a manager throughout the lifecycle of the provider's objects."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith import resources
from capsmith.clusters.hiding import is_secret_variable
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.component import read_asset
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient, NoApiServerError
from capsmith.clusters.processes.tools import core_releases, kubernetes_version, toolbox
from capsmith.clusters.processes.tools.catalogue import KUBERNETES, core_module
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.commands.conformance_release import (
    CheckedProvider,
    ConformanceRequest,
    add_simulation,
    find_namespace,
    read_objects,
    read_prerequisites,
    read_provider,
)
from capsmith.contract.load import load_rules
from capsmith.errors import InvalidOption, UnreadableInput
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.checks import (
    ADDRESSES,
    INFRASTRUCTURE,
    WITHOUT_MACHINE_POOLS,
    list_whole_cluster,
)
from capsmith.judge.running.cluster_session import (
    ClusterSession,
    find_provided_kind,
    read_referenced_roles,
)
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.ipam_session import (
    IPAM_GROUP,
    POOL_ROLES,
    IpamSession,
    select_ipam_objects,
)
from capsmith.judge.running.manager_logs import ManagerLogs, PodLogs
from capsmith.judge.running.model import (
    CheckResult,
    ConformanceCheck,
    ConformanceReport,
    Selection,
    Timing,
)
from capsmith.judge.running.objects import (
    CORE_GROUP,
    MACHINE_POOL,
    TEMPLATE_NAME,
    select_provider_objects,
)
from capsmith.judge.running.run import run_checks, skip_checks
from capsmith.judge.running.session import Session
from capsmith.manifests.parse import mapping_of
from capsmith.manifests.template_values import find_missing_values

if TYPE_CHECKING:
    from capsmith.judge.running.servers import Installation, ManagementServers


_INFRASTRUCTURE = ("InfraCluster", "InfraMachine")
_WHOLE = ("BootstrapConfig", "BootstrapConfigTemplate", "ControlPlane", "ControlPlaneTemplate")


def parse_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Parse the ``NAME=VALUE`` arguments of a repeatable option into a mapping.

    ``option`` is its name in messages.  Raises InvalidOption for an argument in any other form.
    """
    pairs = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name or not separator:
            raise InvalidOption(f"{option} must be NAME=VALUE, not {text}.")
        pairs[name] = value
    return pairs


def parse_ids(texts: Iterable[str]) -> frozenset[str]:
    """Return the names in comma-separated lists, without surrounding blanks or empty names."""
    return frozenset(part.strip() for text in texts for part in text.split(",") if part.strip())


class ManagementAccess(NamedTuple):
    """A client, the kubeconfig and clusterctl for a run's management cluster."""

    client: KubeClient
    kubeconfig: Path
    clusterctl: Callable[[], Clusterctl]


class CheckGroup(NamedTuple):
    """The checks for certain roles, and a function that opens a session for them in a namespace."""

    checks: tuple[ConformanceCheck[Any], ...]
    open: Callable[[CheckedProvider, ConformanceRequest, ManagementAccess, str], BaseSession]


def select_groups(roles: Mapping[str, str]) -> Iterator[CheckGroup]:
    """Yield the check groups for a release's kinds. ``roles`` maps kind to role.

    If no role has checks, yield the infrastructure checks, whose error names the missing objects.
    """
    found = set(roles.values())
    # Also used if there is no known role: the error then names the objects that infrastructure
    # checks need.
    if found.intersection(_INFRASTRUCTURE) or not found.intersection((*_WHOLE, *POOL_ROLES)):
        has_pools = MACHINE_POOL in found
        yield CheckGroup(INFRASTRUCTURE if has_pools else WITHOUT_MACHINE_POOLS, _infrastructure)
    if found.intersection(_WHOLE):
        yield CheckGroup(list_whole_cluster(found), _whole_cluster)
    if found.intersection(POOL_ROLES):
        yield CheckGroup(ADDRESSES, _addresses)


def _infrastructure(
    provider: CheckedProvider, request: ConformanceRequest, access: ManagementAccess, namespace: str
) -> BaseSession:
    documents = _documents(provider, request, access, namespace)
    documents += _pools(provider, request, access, namespace, documents)
    objects = select_provider_objects(documents, provider.roles)
    machine = (objects.machine_kind, objects.machine_version)
    cluster = (objects.cluster_kind, objects.cluster_version)
    version = _require_installed(access.client, cluster, machine)
    core = CoreObjects(version, namespace, kubernetes_version())
    contract = provider.contract(*machine)
    return Session(access.client, core, contract, _timing(request), objects)


def _whole_cluster(
    provider: CheckedProvider, request: ConformanceRequest, access: ManagementAccess, namespace: str
) -> BaseSession:
    documents = _documents(provider, request, access, namespace)
    own = {kind: role for kind, role in provider.roles.items() if role in _WHOLE}
    roles = provider.roles | read_referenced_roles(documents)
    provided = find_provided_kind(documents, own)
    return ClusterSession(
        access.client,
        CoreObjects(_require_installed(access.client, provided), namespace, kubernetes_version()),
        provider.contract(*provided),
        _timing(request),
        select_provider_objects(documents, roles),
        documents=tuple(documents),
        roles=roles,
    )


def _addresses(
    provider: CheckedProvider, request: ConformanceRequest, access: ManagementAccess, namespace: str
) -> BaseSession:
    documents = [] if request.objects is None else read_objects(request.objects)
    crds = [crd for component in provider.components for crd in component.crds]
    pools = select_ipam_objects(documents, crds, provider.roles)
    installed = [(kind, version) for version, kind in pools.kinds]
    core = CoreObjects(
        _require_installed(access.client, *installed), namespace, kubernetes_version()
    )
    contract = access.client.preferred_version(IPAM_GROUP).rpartition("/")[2]
    return IpamSession(access.client, core, contract, _timing(request), pools)


def _timing(request: ConformanceRequest) -> Timing:
    return Timing(request.timeout, request.quiet, request.timeout)


def _require_installed(client: KubeClient, *kinds: tuple[str, str]) -> str:
    """Return the version of core's API.

    ``kinds`` are pairs of API version and kind.  Raises UnreadableInput if core or one of the kinds
    is not installed.
    """
    try:
        client.require_api_server()
        for kind, api_version in kinds:
            client.resolve(api_version, kind)
        return client.preferred_version(CORE_GROUP).rpartition("/")[2]
    except NoApiServerError as error:
        hint = "Specify the kubeconfig of a management cluster."
        raise UnreadableInput("api-server", str(error), hint=hint) from error
    except (ApiError, LookupError, OSError, HTTPException) as error:
        raise UnreadableInput(
            "conformance-not-installed",
            f"core or the provider is not running in the management cluster: {error}",
            hint="Install both with clusterctl init, or start them with --manager.",
        ) from error


def _documents(
    provider: CheckedProvider, request: ConformanceRequest, access: ManagementAccess, namespace: str
) -> list[JSON]:
    """Return the objects of a cluster, from a file or from the generated template."""
    if request.objects is not None:
        return read_objects(request.objects)
    options = {
        "from": _template(provider, request.flavor).resolve(),
        "kubernetes-version": kubernetes_version(),
        "control-plane-machine-count": 1,
        "worker-machine-count": 1,
        "target-namespace": namespace,
    }
    variables = parse_pairs("--variable", request.variables)
    return access.clusterctl().generate(access.kubeconfig, TEMPLATE_NAME, options, variables)


def _pools(
    provider: CheckedProvider,
    request: ConformanceRequest,
    access: ManagementAccess,
    namespace: str,
    known: list[JSON],
) -> list[JSON]:
    """Return one machine pool of each kind in the other templates that is not in ``known``."""
    missing = {kind for kind, role in provider.roles.items() if role == MACHINE_POOL}
    missing -= {str(each["kind"]) for each in known}
    found: dict[str, JSON] = {}
    if request.objects is not None:
        return []
    for path in sorted(provider.release.folder.glob("cluster-template-*.yaml")):
        text = _read_template(path)
        # A cheap test first, because generating a template takes a run of clusterctl and needs
        # values for all its variables.
        if not any(f"kind: {kind}\n" in text for kind in missing - found.keys()):
            continue
        flavored = request._replace(flavor=path.stem.removeprefix("cluster-template-"))
        for each in _documents(provider, flavored, access, namespace):
            if each["kind"] in missing:
                found.setdefault(str(each["kind"]), each)
    return list(found.values())


def _template(provider: CheckedProvider, flavor: str) -> Path:
    """Return the path to the cluster template of the first release that has ``flavor``."""
    paths = _list_templates(provider, flavor)
    for path in paths:
        if path.is_file():
            return path
    raise UnreadableInput(
        "conformance-template",
        "no such cluster template",
        file=str(paths[0]),
        hint="Specify objects with --objects, another --flavor, or, if capsmith generated a"
        " bootstrap or control plane provider, its repository with --simulate.",
    )


def _list_templates(provider: CheckedProvider, flavor: str) -> list[Path]:
    """Return where each release has its cluster template with ``flavor``, if it has one."""
    suffix = f"-{flavor}" if flavor else ""
    return [each.folder / f"cluster-template{suffix}.yaml" for each in provider.releases]


def _check_variables(provider: CheckedProvider, request: ConformanceRequest) -> None:
    """Raise UnreadableInput if the cluster template has variables without value and default."""
    templates = [each for each in _list_templates(provider, request.flavor) if each.is_file()]
    if request.objects is not None or not templates:
        return
    values = {**os.environ, **parse_pairs("--variable", request.variables)}
    text = _read_template(templates[0])
    missing = find_missing_values(text, values)
    if missing:
        raise UnreadableInput(
            "conformance-variables",
            f"variables of the cluster template have no value: {', '.join(missing)}",
            file=str(templates[0]),
            hint=f"Add {' '.join(f'--variable {name}=VALUE' for name in missing)}.",
        )


def _read_template(path: Path) -> str:
    return read_asset(path, "conformance-template", "Correct the file.")


Progress = Callable[[str], None]
_OBJECTS = ("conformance-objects", "conformance-template")
"""Error ids for objects that are missing for one part of a run."""


class _Run(NamedTuple):
    """One run of the command."""

    provider: CheckedProvider
    request: ConformanceRequest
    access: ManagementAccess
    progress: Progress
    done: Callable[[CheckResult], None]
    servers: ManagementServers | None = None
    """Servers that the run started; None in an existing management cluster."""


def run(
    folder: Path,
    request: ConformanceRequest,
    progress: Progress,
    done: Callable[[CheckResult], None],
) -> ConformanceReport:
    """Check the release in a folder, and return the report.

    ``progress`` receives a line before each slow step, and ``done`` receives each result as soon as
    it is known.  Raises CapsmithError if the release cannot be read or a process fails, and
    InvalidOption for options that contradict each other or the release.
    """
    if request.kubeconfig is not None and request.managers:
        raise InvalidOption("--manager and --kubeconfig exclude each other.")
    with _scratch(request.logs) as scratch:
        request = add_simulation(request, scratch)
        provider = read_provider(folder, request)
        # Files that cannot be read are reported before servers start, which takes a minute.
        for path in (*request.apply, *((request.objects,) if request.objects is not None else ())):
            read_objects(path)
        _check_variables(provider, request)
        if request.kubeconfig is not None:
            return _given(provider, request, request.kubeconfig, scratch, progress, done)
        return _started(provider, request, scratch, progress, done)


def _given(
    provider: CheckedProvider,
    request: ConformanceRequest,
    kubeconfig: Path,
    scratch: Path,
    progress: Progress,
    done: Callable[[CheckResult], None],
) -> ConformanceReport:
    """Check a provider that already runs in the user's management cluster."""
    with closing(open_client(kubeconfig, scratch)) as client:
        access = ManagementAccess(client, kubeconfig, lambda: _own_clusterctl(request, scratch))
        return _report(_Run(provider, request, access, progress, done))


def _started(
    provider: CheckedProvider,
    request: ConformanceRequest,
    scratch: Path,
    progress: Progress,
    done: Callable[[CheckResult], None],
) -> ConformanceReport:
    """Start management clusters with the provider, and check the provider there."""
    # Imported only if used, because it needs packages of the extra.
    try:
        from capsmith.judge.running.servers import start_servers
    except ModuleNotFoundError as error:
        raise UnreadableInput(
            "conformance-extra",
            f"the package {error.name} is missing",
            hint="Run `pip install 'capsmith[conformance]'`, or use a cluster with --kubeconfig.",
        ) from error
    if not request.managers:
        raise InvalidOption("Specify the command of the manager with --manager, or a --kubeconfig.")
    known = core_releases()
    if request.core not in known:
        raise InvalidOption(f"--core must be one of {', '.join(known)}, not {request.core}.")
    installed = _installation(provider, request)
    tools = toolbox([KUBERNETES, core_module(request.core)], progress)
    with start_servers(tools, request.core, installed, scratch, progress) as servers:
        management = servers.first.management
        access = ManagementAccess(
            management.client, management.kubeconfig, lambda: servers.clusterctl
        )
        return _report(_Run(provider, request, access, progress, done, servers))


def _installation(provider: CheckedProvider, request: ConformanceRequest) -> Installation:
    from capsmith.judge.running.servers import Installation, ManagerCommand

    commands = [ManagerCommand(each, provider.commands[each.type]) for each in provider.started]
    environment = parse_pairs("--env", request.env)
    variables = parse_pairs("--variable", request.variables)
    # A session creates its own namespace, and then what belongs there.
    numbers = range(1, len(tuple(select_groups(provider.roles))) + 1)
    late = {_namespace(provider, number) for number in numbers}
    early = [each for each in read_prerequisites(request) if find_namespace(each) not in late]
    return Installation(provider.releases, tuple(commands), environment, (), variables, early)


def _report(run: _Run) -> ConformanceReport:
    """Run the parts one after another, each in a separate namespace, and return the report."""
    request, contracts = run.request, []
    results: list[CheckResult] = []
    selection = Selection(parse_ids(request.select), parse_ids(request.ignore))
    all_rules = load_rules(resources.schemas())
    parts = [
        part
        for part in select_groups(run.provider.roles)
        if any(selection.includes(check, all_rules) for check in part.checks)
    ]
    for number, part in enumerate(parts, 1):
        # The user's file may lack the objects of one part; the other parts can still run.
        try:
            session = part.open(run.provider, request, run.access, _namespace(run.provider, number))
        except UnreadableInput as error:
            if len(parts) == 1 or error.finding.id not in _OBJECTS:
                raise
            results += skip_checks(part.checks, all_rules, selection, str(error), run.done)
            continue
        contracts.append(session.contract)
        results += _results(run, part, session, selection)
    contract = ", ".join(dict.fromkeys(contracts))
    return ConformanceReport(run.provider.label, contract, tuple(results), request.strict)


def _results(
    run: _Run, part: CheckGroup, session: BaseSession, selection: Selection
) -> tuple[CheckResult, ...]:
    rules = load_rules(resources.schemas(), session.contract)
    prerequisites = read_prerequisites(run.request)
    session.secrets = find_secrets(run.request.env, prerequisites)
    with ExitStack() as ends:
        # The user keeps using the cluster, so the run ends only when everything it created is gone.
        if run.servers is None:
            session.needed += prerequisites
            namespaces = dict.fromkeys(each.namespace for each in run.provider.components)
            session.logs = PodLogs(run.access.client, tuple(namespaces))
            ends.callback(session.wait_removed)
        else:
            # Objects without a namespace are among them: only the API server knows their scopes.
            places = ("", session.namespace)
            session.needed += [each for each in prerequisites if find_namespace(each) in places]
            _add_servers(session, run.servers, ends, run.progress)
        return run_checks(session, part.checks, rules, selection, run.done, run.progress)


def _add_servers(
    session: BaseSession, servers: ManagementServers, ends: ExitStack, progress: Progress
) -> None:
    """Enable the steps of a session that need servers started by this run."""
    session.logs = ManagerLogs(servers.find_logs)
    session.history.look = servers.check
    if isinstance(session, IpamSession):
        session.manager = servers.first.managers.get("ipam", servers.first.manager)
        return
    session.manager = servers.first.manager
    if isinstance(session, ClusterSession):
        ends.enter_context(servers.booting(session, progress))
    elif isinstance(session, Session):
        session.mover = servers
        session.kubeconfig = servers.first.management.apiserver.kubeconfig_text


def _namespace(provider: CheckedProvider, number: int) -> str:
    suffix = f"-{number}" if number > 1 else ""
    # The name of a namespace is a DNS label: at most 63 characters, without a hyphen at the end.
    return f"conformance-{provider.name}"[: 63 - len(suffix)].rstrip("-") + suffix


def _own_clusterctl(request: ConformanceRequest, scratch: Path) -> Clusterctl:
    """Return the clusterctl on PATH, or build one."""
    config = scratch / "clusterctl.yaml"
    config.write_text("providers: []\n")
    found = shutil.which("clusterctl")
    if found is not None:
        return Clusterctl.installed(Path(found), config, scratch)
    tools = toolbox([core_module(request.core)])
    return Clusterctl(tools, request.core, config, scratch)


def find_secrets(env: Iterable[str], objects: Iterable[JSON]) -> frozenset[str]:
    """Return the secret values in environment variables and in Secrets.

    Each item in ``env`` has the form ``NAME=VALUE``.
    """
    variables = parse_pairs("--env", env)
    found = {value for name, value in variables.items() if is_secret_variable(name)}
    for each in objects:
        if each.get("kind") == "Secret":
            found.update(map(str, mapping_of(each, "stringData").values()))
            for value in map(str, mapping_of(each, "data").values()):
                found.add(value)
                with suppress(ValueError):
                    found.add(base64.b64decode(value).decode())
    # A value such as a kubeconfig has several lines, which appear separately in a log.
    return frozenset(line for value in found for line in map(str.strip, value.splitlines()) if line)


@contextmanager
def _scratch(logs: Path | None) -> Iterator[Path]:
    """Yield a private folder for logs and credentials, which is kept only if ``logs`` names it."""
    if logs is not None:
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield logs.resolve()
        return
    ignore = sys.platform == "win32"
    with tempfile.TemporaryDirectory(prefix="capsmith-", ignore_cleanup_errors=ignore) as folder:
        yield Path(folder)
