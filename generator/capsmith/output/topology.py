"""Data about the provider's kinds for cluster templates, ClusterClasses and samples.

clusterctl substitutes variables in its files and interprets every ``$``.  The author's values are
therefore escaped here, and scalar strings become variables with a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from capsmith.output.clusterctl import build_template_variable
from capsmith.output.crd import build_spec_schema
from capsmith.output.example import (
    build_example,
    build_example_fields,
    build_field_example,
    fit_example,
)
from capsmith.output.samples import (
    build_identity_reference,
    count_least_fields,
    has_version,
    sample_spec,
)
from capsmith.provider.fields import Field
from capsmith.provider.model import (
    POOL_FLAVOR,
    TOPOLOGY_FLAVOR,
    Component,
    Provider,
    Resource,
    Role,
)
from capsmith.safetext import DnsLabel

_CLASS_SCHEMA = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "required",
)
"""Schema keywords that the variable of a ClusterClass supports, beside those with schemas."""
_SCALARS = ("string", "integer", "number", "boolean")
_RESERVED = frozenset({"builtin"})


class ClassVariable(NamedTuple):
    """A ClusterClass variable that sets a required field in a template."""

    name: str
    schema: Mapping[str, Any]
    value: Any
    """Value in the topology template: an example, or a clusterctl variable with an example as its
    default."""
    template: Resource
    path: str
    """JSON pointer to the field in the template."""

    @property
    def field(self) -> str:
        """Return the name of the field that the variable sets."""
        return self.path.rpartition("/")[2]

    @property
    def is_scalar(self) -> bool:
        """Return whether the value fits on the same line as its key."""
        return not isinstance(self.value, list | Mapping)


class Own(NamedTuple):
    """An optional kind that the provider itself defines, and its template."""

    object: Resource
    template: Resource | None
    """Template for the kind, or None if the author left it out.

    Without a template, no ClusterClass uses the kind.
    """
    spec: Mapping[str, Any]
    """Example spec that contains clusterctl variables."""
    class_spec: Mapping[str, Any]
    """Example spec that contains only plain values (CC-74)."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The roles of a component's kinds in a cluster, with an example spec for each.

    Attributes named ``*_spec`` contain clusterctl variables; attributes named ``*_class_spec``
    contain plain values (CC-74).
    """

    cluster: Resource
    cluster_template: Resource | None
    """Template for the cluster kind, or None if the author left it out.

    Without it, there is no ClusterClass.
    """
    machine: Resource | None
    """The kind of machine, or None if no Machines run on the infrastructure."""
    machine_template: Resource | None
    cluster_spec: Mapping[str, Any]
    machine_spec: Mapping[str, Any]
    cluster_class_spec: Mapping[str, Any]
    machine_class_spec: Mapping[str, Any]
    cluster_variables: tuple[ClassVariable, ...]
    machine_variables: tuple[ClassVariable, ...]
    endpoint: bool
    """Whether this provider sets the control plane endpoint (IC-02, IC-04, CP-01)."""
    control_plane: Own | None
    """The provider's own control plane; None if kubeadm's control plane is used."""
    bootstrap: Own | None
    """The provider's own bootstrap configurations; None if kubeadm's are used."""
    pool: Own | None
    """Machine pool that this flavor uses instead of a MachineDeployment; None for other flavors."""
    pools: tuple[Own, ...]
    """All pool kinds that have a template. Each becomes a worker class named after its kind."""

    def pool_variables(self, pool: Own) -> tuple[ClassVariable, ...]:
        """Return the machine variables that a pool has as well, matched by field name and type."""
        schemas = {field.name: field.schema.get("type") for field in pool.object.spec_fields}
        return tuple(
            variable
            for variable in self.machine_variables
            if schemas.get(variable.field, "") == variable.schema.get("type")
        )

    @property
    def control_plane_machines(self) -> bool:
        """Return whether the control plane consists of Machines (CP-11, CP-25)."""
        if self.control_plane is None:
            return self.machine is not None
        return "machines" in self.control_plane.object.features

    @property
    def control_plane_version(self) -> bool:
        """Return whether the CRD of the control plane has ``spec.version`` (CP-08)."""
        return self.control_plane is None or has_version(self.control_plane.object)

    @property
    def control_plane_replicas(self) -> bool:
        """Return whether the control plane has replicas (CP-04)."""
        return self.control_plane is None or "replicas" in self.control_plane.object.features

    @property
    def variables(self) -> tuple[ClassVariable, ...]:
        """Return all variables that the ClusterClass defines."""
        return self.cluster_variables + self.machine_variables


def build_topology(
    component: Component, provider: Provider, flavor: str = "", cluster_class: str = ""
) -> Topology:
    """Return the topology of ``component``, which must have an InfraCluster.

    ``flavor`` or ``cluster_class`` selects the cluster template or ClusterClass.  If a provider has
    several cluster or machine kinds, the first ClusterClass uses the first of each, the second uses
    the next, and so on.  The same applies to the default cluster template and the flavors.
    """
    place = _place(provider, flavor, cluster_class)
    cluster = _kind_at(place, component.role(Role.INFRA_CLUSTER))
    cluster_template = component.find_template(cluster)
    machine, machine_template, created = _find_machine(component, place)
    # A variable is defined only once in a ClusterClass, and `builtin` belongs to core, so such
    # names get the kind as a prefix.
    shared = _names(cluster) & (_names(machine) if machine else frozenset()) | _RESERVED
    control_plane = _own(provider, Role.CONTROL_PLANE)
    suppliers = [cluster, *([control_plane.object] if control_plane else ())]
    return Topology(
        cluster=cluster,
        cluster_template=cluster_template,
        machine=machine,
        machine_template=machine_template,
        cluster_spec=_complete(cluster, _spec(cluster, provider)),
        machine_spec=_spec(created, provider) if created else {},
        cluster_class_spec=_sample_template(cluster, cluster_template, provider),
        machine_class_spec=_sample_template(created, machine_template, provider),
        cluster_variables=_variables(cluster, cluster_template, shared),
        machine_variables=_variables(machine, machine_template, shared) if machine else (),
        endpoint=any("controlPlaneEndpoint" in supplier.features for supplier in suppliers),
        control_plane=control_plane,
        bootstrap=_own(provider, Role.BOOTSTRAP_CONFIG),
        pool=_flavored(provider, flavor),
        pools=tuple(pool for pool in _all_own(provider, Role.INFRA_MACHINE_POOL) if pool.template),
    )


def _find_machine(
    component: Component, place: int
) -> tuple[Resource | None, Resource | None, Resource | None]:
    """Return a kind of machine, its template, and the kind with the template's fields.

    All three are None in a provider without machines.
    """
    machines = component.role(Role.INFRA_MACHINE)
    if not machines:
        return None, None, None
    machine = _kind_at(place, machines)
    template = _kind_at(place, component.role(Role.INFRA_MACHINE_TEMPLATE))
    # Samples of templates need what the templates require, which may be more than the kind does.
    return machine, template, machine._replace(spec_fields=template.spec_fields)


def _own(provider: Provider, role: Role) -> Own | None:
    return next(iter(_all_own(provider, role)), None)


def _all_own(provider: Provider, role: Role) -> tuple[Own, ...]:
    return tuple(
        Own(
            kind,
            component.find_template(kind),
            _spec(kind, provider),
            escape_dollars(_class_spec(kind, component.find_template(kind), provider)),
        )
        for component in provider.components
        for kind in component.role(role)
    )


def _class_spec(kind: Resource, template: Resource | None, provider: Provider) -> dict[str, Any]:
    """Return the example spec in the template of a bootstrap config, control plane or pool."""
    spec = build_example_fields(kind.spec_fields, count_least_fields(kind, provider))
    return _fit_template(template, spec, sample_spec(kind, provider))


def _sample_template(
    kind: Resource | None, template: Resource | None, provider: Provider
) -> dict[str, Any]:
    """Return the example spec in the template of a cluster or machine; empty without a kind."""
    if kind is None:
        return {}
    sample = sample_spec(kind, provider)
    return dict(escape_dollars(_fit_template(template, sample, sample)))


def _fit_template(
    template: Resource | None, spec: dict[str, Any], sample: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ``spec`` with what only the template requires, such as a version that core replaces.

    Its values are those of ``sample`` if possible.
    """
    if template is None or template.contract_fields is None:
        return spec
    schema = build_spec_schema(template, template.storage_version)
    required = {name: sample[name] for name in schema.get("required", ()) if name in sample}
    return dict(fit_example(schema, {**required, **spec}))


def _flavored(provider: Provider, flavor: str) -> Own | None:
    pools = _all_own(provider, Role.INFRA_MACHINE_POOL)
    names = [POOL_FLAVOR, *(f"{POOL_FLAVOR}-{pool.object.singular}" for pool in pools)]
    return (*pools[:1], *pools)[names.index(flavor)] if pools and flavor in names else None


def _kind_at(place: int, kinds: tuple[Resource, ...]) -> Resource:
    # The last kind is used for all further places, because there may be fewer machine kinds than
    # cluster kinds.
    return kinds[min(place, len(kinds) - 1)]


def _place(provider: Provider, flavor: str, cluster_class: str) -> int:
    if cluster_class:
        return list(provider.cluster_classes).index(DnsLabel(cluster_class))
    plain = ["", *(each for each in provider.flavors if not _is_special(each, provider))]
    return plain.index(flavor) if flavor in plain else 0


def _is_special(flavor: str, provider: Provider) -> bool:
    return flavor == TOPOLOGY_FLAVOR or _flavored(provider, flavor) is not None


def escape_dollars(value: Any) -> Any:
    """Return ``value`` with every ``$`` doubled; clusterctl's substitution reverses this."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, Mapping):
        return {escape_dollars(key): escape_dollars(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escape_dollars(item) for item in value]
    return value


def _spec(resource: Resource, provider: Provider) -> dict[str, Any]:
    reference = escape_dollars(build_identity_reference(resource, provider))
    least = count_least_fields(resource, provider) - len(reference)
    values = escape_dollars(build_example_fields(resource.spec_fields, least))
    values |= {
        field.name: _value(field, resource) for field in resource.spec_fields if field.required
    }
    return {**values, **reference}


def _complete(resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
    """Return ``spec`` with examples for the contract's fields that the author requires."""
    fields = resource.contract_fields.spec if resource.contract_fields is not None else {}
    missing = {
        name: escape_dollars(build_example(field.schema))
        for name, field in fields.items()
        if field.required and "default" not in field.schema and name not in spec
    }
    return {**missing, **spec}


def _value(field: Field, resource: Resource) -> Any:
    """Return the example of a field; plain strings become ``${KIND_FIELD:=example}``."""
    variable = build_template_variable(field, resource)
    if variable is None:
        return escape_dollars(build_field_example(field))
    return f"${{{variable.name}:={variable.default}}}"


def _variables(
    resource: Resource, template: Resource | None, shared: frozenset[str]
) -> tuple[ClassVariable, ...]:
    if template is None:
        return ()
    return tuple(
        ClassVariable(
            name=_variable_name(field, resource, shared),
            schema=escape_dollars(_select_class_schema(field.schema)),
            value=_value(field, resource),
            template=template,
            path=f"/spec/template/spec/{field.name}",
        )
        for field in resource.spec_fields
        if field.required and _is_expressible(field.schema)
    )


def _is_expressible(schema: Any) -> bool:
    """Return whether the variable of a ClusterClass can have such a value."""
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "array":
        return _is_expressible(schema.get("items"))
    if schema.get("type") == "object" and schema.get("properties"):
        return all(map(_is_expressible, schema["properties"].values()))
    return schema.get("type") in _SCALARS


def _select_class_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: schema[key] for key in _CLASS_SCHEMA if key in schema}
    if "items" in schema:
        found["items"] = _select_class_schema(schema["items"])
    if "properties" in schema:
        found["properties"] = {
            name: _select_class_schema(below) for name, below in schema["properties"].items()
        }
    return found


def _variable_name(field: Field, resource: Resource, shared: frozenset[str]) -> str:
    if field.name not in shared:
        return field.name
    kind = str(resource.kind)
    return f"{kind[0].lower()}{kind[1:]}{field.name[0].upper()}{field.name[1:]}"


def _names(resource: Resource) -> frozenset[str]:
    return frozenset(field.name for field in resource.spec_fields)
