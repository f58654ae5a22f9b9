"""Create a cluster from the provider's template, and watch it until all its Machines run."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

from capsmith.clusters.lab.connection import LabConnection, connect
from capsmith.clusters.lab.errors import LabError, convert_api_error, keep_tail
from capsmith.clusters.lab.folder import LabFolder, is_held
from capsmith.clusters.lab.objects import CLUSTER_NAME, Cluster, MachineObjects
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.samples import apply_unless_changed
from capsmith.clusters.lab.simulated.external_etcd import add_external_etcd
from capsmith.clusters.lab.simulated.infrastructure import build_cluster_template
from capsmith.clusters.lab.state import LabState, RunState, read_lab, read_run
from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.tools import kubernetes_version
from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith.clusters.processes.tools.catalogue import default_core, has_kubeadm
from capsmith.clusters.processes.wait import PATIENCE
from capsmith.manifests.template_values import find_missing_values

_GROUP = "cluster.x-k8s.io"
_KUBEADM = "KubeadmConfig"


def observe(client: KubeClient, namespace: str, name: str) -> Cluster:
    """Return a Cluster with its related objects. Objects that do not exist are left out."""
    core = client.preferred_version(_GROUP)
    cluster = client.find(core, "Cluster", name, namespace)
    if cluster is None:
        return Cluster(None)
    spec, labels = cluster["spec"], {CLUSTER_NAME: name}
    machines = client.list(core, "Machine", namespace, labels)
    machines.sort(key=lambda each: str(each["metadata"]["name"]))
    return Cluster(
        cluster=cluster,
        infrastructure=_referenced(client, spec.get("infrastructureRef"), namespace),
        control_plane=_referenced(client, spec.get("controlPlaneRef"), namespace),
        deployments=tuple(client.list(core, "MachineDeployment", namespace, labels)),
        machines=tuple(_machine(client, each, namespace) for each in machines),
    )


def _machine(client: KubeClient, machine: JSON, namespace: str) -> MachineObjects:
    spec = machine["spec"]
    configuration = (spec.get("bootstrap") or {}).get("configRef") or {}
    # The simulation replaces kubeadm, so the row of its configuration would never change.
    if configuration.get("kind") == _KUBEADM:
        configuration = {}
    return MachineObjects(
        machine=machine,
        infrastructure=_referenced(client, spec.get("infrastructureRef"), namespace),
        bootstrap=_referenced(client, configuration, namespace),
    )


def _referenced(client: KubeClient, reference: JSON | None, namespace: str) -> JSON | None:
    if not reference or not reference.get("name"):
        return None
    try:
        version = reference.get("apiVersion") or _version(client, reference)
        return client.find(version, reference["kind"], reference["name"], namespace)
    except (ApiError, LookupError):
        return None


def _version(client: KubeClient, reference: JSON) -> str:
    """Return the version of the group that has the kind, because providers may share a group."""
    group = client.request("GET", f"/apis/{reference['apiGroup']}")
    for each in group["versions"]:
        with suppress(LookupError):
            return client.resolve(each["groupVersion"], reference["kind"]).api_version
    raise LookupError(f"no version of {reference['apiGroup']} has the kind {reference['kind']}")


Progress = Callable[[str], None]
Show = Callable[[Cluster], None]

NAMESPACE = "default"
CONTROL_PLANES, WORKERS = 1, 2
_LOOK_SECONDS = 0.4
_RUNNING_SECONDS = 600.0
_IMAGE_SECONDS = 1800.0


def check_template(provider: ProviderRepository, state: LabState) -> None:
    """Raise LabError if neither the provider nor the lab provides infrastructure for a cluster."""
    if not provider.has_infrastructure and not state.simulated:
        message = "the provider has no infrastructure, and the lab simulates none in this cluster"
        hint = "Use capsmith lab run and apply objects, or run capsmith lab up without options."
        raise LabError("lab-no-infrastructure", message, hint=hint)


def check_variables(provider: ProviderRepository) -> None:
    """Raise LabError if the provider's cluster template has variables without value and default."""
    template = provider.cluster_template
    if not provider.has_infrastructure or not template.is_file():
        return
    text = template.read_text(encoding="utf-8", errors="replace")
    missing = find_missing_values(text, os.environ)
    if missing:
        message = f"variables of the cluster template have no value: {', '.join(missing)}"
        commands = "; ".join(f"export {name}=VALUE" for name in missing)
        hint = f"Set them, and run capsmith lab demo again: {commands}."
        raise LabError("lab-variables", message, file=str(template), hint=hint)


def ensure_run(provider: ProviderRepository, lab: LabFolder, progress: Progress) -> RunState:
    """Return the state of the provider's run once its managers are ready.

    A run that is already active for the provider in this folder is used.  Otherwise a run is
    started in the background.  ``progress`` receives messages about the current step.  Raises
    LabError if the lab runs a provider in another folder, or if the run does not become ready; a
    run that this call started is stopped.
    """
    if is_held(lab.run_lock):
        state = _wait_ready(lab, None)
        if state.folder != str(provider.folder):
            message = f"the lab {lab.name} is running the provider in {state.folder}"
            hint = "End it with capsmith lab down, or choose another lab with --name."
            raise LabError("lab-run-active", message, hint=hint)
        return state
    progress("starting the provider: capsmith lab run, in the background")
    command = [sys.executable, "-m", "capsmith", "lab", "run", str(provider.folder)]
    lab.run_log.unlink(missing_ok=True)
    with lab.run_log.open("ab") as log:
        child = subprocess.Popen(
            [*command, "--name", lab.name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # The run outlives this command and must not receive its Ctrl-C.
            start_new_session=True,
        )
    try:
        return _wait_ready(lab, child)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE)
        raise


def create(
    provider: ProviderRepository,
    lab: LabFolder,
    name: str,
    progress: Progress,
    more: Sequence[JSON] = (),
) -> None:
    """Create the objects that a user would create: identities, and a cluster from the template.

    ``more`` are further objects to create before the cluster.  An existing cluster named ``name``
    is left unchanged, and so are existing objects that others have changed.  ``progress`` receives
    messages about the current step.
    """
    with connect(lab) as connection:
        for each in (*provider.prerequisites, *more):
            _apply(connection, place_object(connection.client, each), progress)
        core = connection.client.preferred_version("cluster.x-k8s.io")
        if connection.client.find(core, "Cluster", name, NAMESPACE) is not None:
            progress(f"the Cluster {name} already exists")
            return
        progress(f"creating the Cluster {name}: clusterctl generate cluster {name}")
        documents = _rendered(connection, provider, name)
        _check_kubeadm(connection, documents)
        # The Cluster comes last, so that everything it refers to exists when core looks.
        for each in sorted(documents, key=lambda each: str(each["kind"]) == "Cluster"):
            _apply(connection, each, progress)


def place_object(client: KubeClient, obj: JSON) -> JSON:
    """Return an object in the namespace of the demo, unless it has a namespace or needs none.

    Raises LabError if the API server does not serve its kind.
    """
    try:
        is_namespaced = client.resolve(obj["apiVersion"], obj["kind"]).namespaced
    except (ApiError, LookupError) as error:
        message = f"{obj['kind']} {obj['metadata']['name']} cannot be created: {error}"
        hint = "Correct its apiVersion and kind."
        raise LabError("lab-object-kind", message, hint=hint) from error
    if not is_namespaced or obj["metadata"].get("namespace"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}}


def _apply(connection: LabConnection, obj: JSON, progress: Progress) -> None:
    metadata = obj["metadata"]
    place = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    try:
        if not apply_unless_changed(connection.client, obj):
            progress(
                f"the {obj['kind']} {place} differs from the provider's, and is left unchanged;"
                " to replace it, delete it and repeat the command"
            )
    except (ApiError, LookupError, OSError, HTTPException) as error:
        what = f"{obj['kind']} {metadata['name']} cannot be created"
        raise convert_api_error(error, what) from error


def watch(lab: LabFolder, name: str, show: Show) -> Cluster:
    """Show a cluster until all its Machines are running, and return it.

    ``show`` receives the cluster repeatedly. Raises LabError if this takes more than ten minutes,
    or if the lab is shut down.
    """
    deadline = time.monotonic() + _RUNNING_SECONDS
    with connect(lab) as connection:
        while True:
            # The API server may restart, and objects may be deleted between two requests; the next
            # iteration shows the new state.
            with suppress(ApiError, OSError, HTTPException):
                found = observe(connection.client, NAMESPACE, name)
                show(found)
                if found.is_running:
                    return found
            _check(lab, name, deadline)
            time.sleep(_LOOK_SECONDS)


def _check(lab: LabFolder, name: str, deadline: float) -> None:
    if not lab.is_running:
        message = "the lab has ended"
        raise LabError("lab-not-running", message, hint="Run capsmith lab demo again.")
    if not is_held(lab.run_lock):
        hint = "Run capsmith lab demo again; capsmith lab logs shows why it ended."
        raise LabError("lab-run-ended", "capsmith lab run has ended", hint=hint)
    if time.monotonic() > deadline:
        message = f"the Machines of {name} are not running after {_RUNNING_SECONDS:g} s"
        hint = "The table shows what each object waits for; read capsmith lab logs manager."
        raise LabError("lab-demo-timeout", message, hint=hint)


def _rendered(connection: LabConnection, provider: ProviderRepository, name: str) -> list[JSON]:
    options = {
        **_source(connection, provider),
        "kubernetes-version": kubernetes_version(),
        "control-plane-machine-count": CONTROL_PLANES,
        "worker-machine-count": WORKERS,
        "target-namespace": NAMESPACE,
    }
    documents = connection.clusterctl.generate(connection.kubeconfig, name, options, {})
    etcd = connection.state.etcd
    if not etcd:
        return documents
    return add_external_etcd(documents, etcd, connection.pki, NAMESPACE, name)


def _check_kubeadm(connection: LabConnection, documents: list[JSON]) -> None:
    """Raise LabError if the template needs kubeadm providers that this lab lacks."""
    kinds = [str(each["kind"]) for each in documents if each["kind"].startswith("Kubeadm")]
    if kinds and connection.state.simulated and not has_kubeadm(connection.state.series):
        message = f"a lab with core {connection.state.series} has no {kinds[0]}"
        hint = f"Run capsmith lab down, then capsmith lab demo --core {default_core()}."
        raise LabError("lab-no-kubeadm", message, hint=hint)


def _source(connection: LabConnection, provider: ProviderRepository) -> dict[str, str]:
    """Return the clusterctl option that specifies the template, by option name."""
    if not provider.has_infrastructure:
        return {"from": str(build_cluster_template(connection.lab, provider))}
    label = f"infrastructure-{provider.name}"
    (entry,) = (each for each in connection.repository.entries if each.label == label)
    return {"infrastructure": f"{entry.name}:{entry.version}"}


def _wait_ready(lab: LabFolder, child: subprocess.Popen[bytes] | None) -> RunState:
    state = read_lab(lab.state)
    # With Pods, an image is built first.
    seconds = _IMAGE_SECONDS if state is not None and state.node else 2 * PATIENCE
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        run = read_run(lab.run_state)
        # The lock decides, because a killed run may have left its state file behind.
        if run is not None and run.state == "running" and is_held(lab.run_lock):
            return run
        if run is not None and run.state == "crashed":
            hint = "Correct it, and run capsmith lab demo again."
            raise LabError("lab-manager-crashed", run.message, file=run.folder, hint=hint)
        has_ended = not is_held(lab.run_lock) if child is None else child.poll() is not None
        if has_ended:
            break
        time.sleep(_LOOK_SECONDS)
    message = f"the manager does not start:\n{_tail(lab.run_log)}"
    raise LabError("lab-manager-crashed", message, hint="Run capsmith lab run to see more.")


def _tail(path: Path) -> str:
    try:
        return keep_tail(path.read_text(errors="replace"))
    except OSError:
        return ""


def format_hints(lab: str, state: LabState, run: RunState, found: Cluster) -> list[str]:
    """Return lines with commands for the user to try after the demo."""
    tool, command, name = find_kubectl_command(), _capsmith(), _name(found.cluster)
    restarts = f"it restarts: {command} lab status --name {lab}"
    kinds = ["cluster", "machine", *_kinds(found)]
    steps = [
        ("look", f"{tool} get {','.join(kinds)}"),
        *(("scale", _scale(tool, _name(each))) for each in found.deployments[:1]),
        ("kill the manager", f"{_kill(tool, run, state)}  # {restarts}"),
        ("change the code", f"edit a file below {run.folder}/src: the manager restarts"),
        ("delete", f"{tool} delete cluster {name}"),
        ("read logs", f"{command} lab logs manager --follow --name {lab}"),
        ("end", f"{command} lab down --name {lab}"),
    ]
    width = max(len(title) for title, _ in steps)
    simulated = "Nodes are simulated: no machine has booted. " if state.simulated else ""
    return [
        f"{simulated}Try:",
        f"  export KUBECONFIG={shlex.quote(state.kubeconfig)}",
        *(f"  {title.ljust(width)}  {command}" for title, command in steps),
    ]


def _kinds(found: Cluster) -> list[str]:
    """Return the kinds of the providers' objects: those of the cluster, then those of Machines."""
    of_cluster = (found.infrastructure, found.control_plane)
    of_machines = [obj for each in found.machines for obj in (each.bootstrap, each.infrastructure)]
    return [
        kind
        for objects in (of_cluster, of_machines)
        for kind in sorted({str(obj["kind"]).lower() for obj in objects if obj})
    ]


def _scale(tool: str, deployment: str) -> str:
    return f"{tool} scale machinedeployment {deployment} --replicas 4"


def _kill(tool: str, run: RunState, state: LabState) -> str:
    if state.node:
        return f"{tool} delete pod --all-namespaces -l control-plane=controller-manager"
    return "kill -9 " + " ".join(
        str(each.pid) for each in run.components if each.name.startswith("manager-")
    )


def _capsmith() -> str:
    """Return the command that runs this capsmith: its name if it is on PATH, or else its path."""
    if shutil.which("capsmith"):
        return "capsmith"
    beside = Path(sys.executable).with_name("capsmith")
    return shlex.quote(str(beside)) if beside.exists() else "capsmith"


def find_kubectl_command() -> str:
    """Return the shell command for kubectl: its quoted path if it is installed but not on PATH."""
    if shutil.which("kubectl"):
        return "kubectl"
    try:
        return shlex.quote(find_kubectl())
    except ToolsUnavailable:
        return "kubectl"


def _name(obj: object) -> str:
    return str(obj["metadata"]["name"]) if isinstance(obj, dict) else ""
