"""Run checks in a whole cluster created from a template, for bootstrap and control plane
providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from capsmith.clusters.processes.kube import JSON
from capsmith.errors import UnreadableInput
from capsmith.judge.running.contract import V1BETA1
from capsmith.judge.running.history import WatchedKind
from capsmith.judge.running.model import Skipped, Violated
from capsmith.judge.running.objects import CONTROL_PLANE, TEMPLATE_NAME
from capsmith.judge.running.session import Session

WHOLE = TEMPLATE_NAME
"""Name of the cluster created from the template."""
OWNERLESS_CONFIG = "conformance-ownerless"
"""Name of a bootstrap configuration that no Machine uses."""
_ENDPOINT_HINT = (
    "Machines must serve the endpoint of the Cluster where core and the managers can reach it. "
    "If nothing boots them, start the run with --manager and an endpoint at 127.0.0.1."
)
_CREATION = "the creation of the whole cluster"


@dataclass
class ClusterSession(Session):
    """The state shared by all checks of a run, and the documents of the cluster template."""

    documents: tuple[JSON, ...] = field(kw_only=True)
    roles: Mapping[str, str] = field(kw_only=True)
    """Role of each kind, such as `ControlPlane` or `BootstrapConfigTemplate`."""

    def provider_kinds(self) -> list[WatchedKind]:
        """Return the kinds of all objects in the cluster that belong to a provider."""
        kinds = super().provider_kinds()
        template, control_plane = self._config_template, self._control_plane
        if template is not None:
            kinds.append(WatchedKind(template["apiVersion"], self.config_kind))
        if control_plane is not None:
            kinds.append(WatchedKind(control_plane["apiVersion"], control_plane["kind"]))
        return kinds

    @property
    def config_kind(self) -> str:
        """Return the kind of the workers' bootstrap configurations.

        Raises Skipped if the template has no such kind.
        """
        if self._config_template is None:
            raise Skipped("the cluster template has no bootstrap configuration for workers")
        return str(self._config_template["kind"]).removesuffix("Template")

    @property
    def control_plane_kind(self) -> str:
        """Return the control plane's kind.

        Raises Skipped if there is none.
        """
        if self._control_plane is None:
            raise Skipped("the cluster template has no control plane")
        return str(self._control_plane["kind"])

    @property
    def control_plane_name(self) -> str:
        """Return the control plane's name.

        Raises Skipped if there is none.
        """
        if self._control_plane is None:
            raise Skipped("the cluster template has no control plane")
        return str(self._control_plane["metadata"]["name"])

    @property
    def machines(self) -> int:
        """Return the number of Machines that the cluster template requests."""
        kinds = ("MachineDeployment", self.control_plane_kind)
        sizes = [each["spec"].get("replicas") for each in self.documents if each["kind"] in kinds]
        return sum(int(size) for size in sizes if size is not None)

    def ensure_whole_cluster(self) -> JSON:
        """Return the Cluster from the template once each of its Machines has bootstrap data.

        The first call creates the cluster.
        """

        def create() -> None:
            self._create_ownerless()
            # The Cluster comes last, because its references would otherwise lead nowhere for a
            # while.
            for document in sorted(self.documents, key=lambda each: str(each["kind"]) == "Cluster"):
                metadata = {**document["metadata"], "namespace": self.namespace}
                self.apply({**document, "metadata": metadata})
            self._wait_initialized()
            self.wait("Cluster", WHOLE, self._has_machines, "not every Machine has bootstrap data")

        self.run_once(_CREATION, create)
        return self.latest("Cluster", WHOLE)

    def _wait_initialized(self) -> None:
        kind, name = self.control_plane_kind, self.control_plane_name
        what, path = "the control plane was never initialized", initialized_path(self.contract)
        try:
            self.wait(kind, name, lambda obj: is_initialized(obj, self.contract), what, path)
        except Violated as error:
            error.hint = _ENDPOINT_HINT
            raise

    def take_over(self) -> None:
        """Use an existing cluster once each of its Machines has bootstrap data.

        Creates only the bootstrap configuration without an owner.
        """
        self.run_once(_CREATION, self._create_ownerless)
        self.wait(self.config_kind, OWNERLESS_CONFIG, bool, "it does not exist")
        self.wait("Cluster", WHOLE, self._has_machines, "not every Machine has bootstrap data")

    def members(self) -> list[JSON]:
        """Return the control plane's Machines."""
        machines = self.list_existing("Machine")
        return [each for each in machines if CONTROL_PLANE in each["metadata"]["labels"]]

    def configs(self) -> list[tuple[JSON, JSON]]:
        """Return (Machine, bootstrap configuration) for each Machine that has a configuration."""
        self.ensure_whole_cluster()
        found = []
        for machine in self.list_existing("Machine"):
            reference = machine["spec"]["bootstrap"].get("configRef") or {}
            if reference.get("kind") == self.config_kind:
                self._wait_reported(reference["name"])
                found.append((machine, self.latest(self.config_kind, reference["name"])))
        return found

    def _wait_reported(self, config: str) -> None:
        # Each kind is watched separately, so the Machine's data may be seen before the report that
        # core copied them from.
        def has_report(_: JSON) -> bool:
            states = self.history.states(self.config_kind, config)
            return any(data_name(s) and is_data_created(s, self.contract) for s in states)

        self.wait(
            *(self.config_kind, config, has_report),
            "core copied the name of its data, but it never reported any",
            data_path(self.contract),
        )

    @property
    def _config_template(self) -> JSON | None:
        return self._document("BootstrapConfigTemplate")

    @property
    def _control_plane(self) -> JSON | None:
        return self._document("ControlPlane")

    def _document(self, role: str) -> JSON | None:
        found = (each for each in self.documents if self.roles.get(each["kind"]) == role)
        return next(found, None)

    def _has_machines(self, cluster: JSON) -> bool:
        machines = self.list_existing("Machine")
        # The number matters too, because Machines that core has not created yet are not in the
        # history.
        data = [each["spec"]["bootstrap"].get("dataSecretName") for each in machines]
        return len(data) >= self.machines and all(data)

    def _create_ownerless(self) -> None:
        template = self._config_template
        if template is None:
            return
        metadata = {"name": OWNERLESS_CONFIG, "namespace": self.namespace}
        names = {"apiVersion": template["apiVersion"], "kind": self.config_kind}
        spec = template["spec"]["template"].get("spec") or {}
        self.client.create({**names, "metadata": metadata, "spec": spec})


def read_referenced_roles(documents: Iterable[JSON]) -> dict[str, str]:
    """Return each kind's role, based on references in a Cluster and its MachineDeployments."""
    roles: dict[str, str] = {}
    for document in documents:
        spec = document.get("spec") or {}
        if document["kind"] == "Cluster":
            roles |= _named(spec, "infrastructureRef", "InfraCluster")
            roles |= _named(spec, "controlPlaneRef", "ControlPlane")
        if document["kind"] == "MachineDeployment":
            machine = spec["template"]["spec"]
            roles |= _named(machine, "infrastructureRef", "InfraMachineTemplate")
            roles |= _named(machine["bootstrap"], "configRef", "BootstrapConfigTemplate")
    return roles


def _named(spec: JSON, reference: str, role: str) -> dict[str, str]:
    found = spec.get(reference) or {}
    return {str(found["kind"]): role} if found.get("kind") else {}


def find_provided_kind(documents: Iterable[JSON], roles: Mapping[str, str]) -> tuple[str, str]:
    """Return the kind and API version of the first document whose kind is in ``roles``.

    Raises UnreadableInput (``conformance-objects``) if there is none.
    """
    for document in documents:
        if document["kind"] in roles:
            return str(document["kind"]), str(document["apiVersion"])
    raise UnreadableInput(
        "conformance-objects",
        "no object has a kind of the provider",
        hint="Specify the objects of a whole cluster with --objects, or, if capsmith generated the"
        " provider, its repository with --simulate.",
    )


def is_data_created(obj: JSON, contract: str) -> bool:
    """Return whether a bootstrap configuration reports that its bootstrap data exists."""
    status = obj.get("status") or {}
    if contract == V1BETA1:
        return bool(status.get("ready"))
    return bool((status.get("initialization") or {}).get("dataSecretCreated"))


def data_path(contract: str) -> str:
    """Return the path to the field that :func:`is_data_created` reads."""
    return "status.ready" if contract == V1BETA1 else "status.initialization.dataSecretCreated"


def data_name(obj: JSON) -> str:
    """Return the name of the bootstrap data Secret, or an empty string if it is not set."""
    return str((obj.get("status") or {}).get("dataSecretName") or "")


def is_initialized(obj: JSON, contract: str) -> bool:
    """Return whether a control plane reports that its API server responds."""
    status = obj.get("status") or {}
    if contract == V1BETA1:
        return bool(status.get("initialized"))
    return bool((status.get("initialization") or {}).get("controlPlaneInitialized"))


def initialized_path(contract: str) -> str:
    """Return the path to the field that :func:`is_initialized` reads."""
    if contract == V1BETA1:
        return "status.initialized"
    return "status.initialization.controlPlaneInitialized"
