"""provider/topology.py and provider/reference.py: what templates, classes and docs say."""

from __future__ import annotations

from typing import Any

import yaml

from capsmith.commands.build import build_checked
from capsmith.findings import Severity
from capsmith.output.reference import list_field_rows
from capsmith.output.samples import sample_spec
from capsmith.output.topology import build_topology, escape_dollars
from capsmith.provider.fields import ContractFields, CrdOptions, Field, OwnField
from capsmith.provider.model import Component, Provider, Role
from capsmith.provider.versions import get_preferred_version
from capsmith.safetext import DnsLabel, Identifier
from tests.unit.provider.build import REGION, SIZE, provider, resource, version


def with_machine_fields(*fields: Field) -> tuple[Component, Provider]:
    made = provider()
    component = made.components[0]
    resources = tuple(
        each._replace(spec_fields=fields) if "Machine" in each.role else each
        for each in component.resources
    )
    return component._replace(resources=resources), made


def field(name: str, required: bool = True, **schema: Any) -> Field:
    return Field(name, Identifier(name.lower()), schema, required)


def test_plain_strings_become_variables_of_clusterctl() -> None:
    made = provider()
    parts = build_topology(made.components[0], made)

    assert parts.cluster_spec == {"region": "${ACME_CLUSTER_REGION:=north}"}
    assert parts.machine_spec == {"size": "${ACME_MACHINE_SIZE:=example}"}
    assert parts.machine_class_spec == {"size": "example"}


def test_what_cannot_be_a_default_stands_as_an_escaped_value() -> None:
    fields = (
        field("motd", type="string", default="costs ${5} or $$"),
        field("cores", type="integer", minimum=2),
        field("free", required=False, type="string"),
    )
    parts = build_topology(*with_machine_fields(*fields))

    assert parts.machine_spec == {"motd": "costs $${5} or $$$$", "cores": 2}
    assert parts.machine_class_spec == parts.machine_spec


def test_required_scalars_are_variables_of_the_class() -> None:
    fields = (
        field("cores", type="integer", minimum=2, multipleOf=2),
        field("labels", type="object", additionalProperties={"type": "string"}),
        field("pattern", type="string", pattern="^a$$"),
    )
    parts = build_topology(*with_machine_fields(*fields))
    cores, pattern = parts.machine_variables

    assert (cores.name, cores.path, cores.value) == ("cores", "/spec/template/spec/cores", 2)
    # multipleOf is no word of a ClusterClass variable's schema.
    assert cores.schema == {"type": "integer", "minimum": 2}
    assert pattern.schema["pattern"] == "^a$$$$"
    assert cores.template.role is Role.INFRA_MACHINE_TEMPLATE


def test_required_lists_and_objects_are_variables_of_the_class() -> None:
    disk = {"type": "object", "properties": {"gib": {"type": "integer", "multipleOf": 2}}}
    fields = (
        field("disks", type="array", minItems=1, items={**disk, "required": ["gib"]}),
        field("labels", type="object", additionalProperties={"type": "string"}),
        field("port", **{"x-kubernetes-int-or-string": True}),
    )
    component, made = with_machine_fields(*fields)
    (disks,) = build_topology(component, made).machine_variables
    item = {"type": "object", "required": ["gib"], "properties": {"gib": {"type": "integer"}}}
    assert disks.schema == {"type": "array", "minItems": 1, "items": item}
    assert disks.path == "/spec/template/spec/disks"
    assert not disks.is_scalar

    built, findings = build_checked(made._replace(components=(component,)), None)
    assert built is not None
    assert not [each for each in findings if each.severity is Severity.ERROR]
    (cluster,) = (
        document
        for document in yaml.safe_load_all(built["templates/cluster-template-topology.yaml"].text)
        if document["kind"] == "Cluster"
    )
    given = {"name": "disks", "value": [{"gib": 2}]}
    assert given in cluster["spec"]["topology"]["variables"]


def test_names_that_two_kinds_or_core_use_carry_their_kind() -> None:
    parts = build_topology(*with_machine_fields(REGION, field("builtin", type="string")))

    assert [variable.name for variable in parts.variables] == [
        "acmeClusterRegion",
        "acmeMachineRegion",
        "acmeMachineBuiltin",
    ]


def test_the_identity_is_referred_to_where_there_is_one() -> None:
    made = provider(credentials=True)
    component = made.components[0]
    cluster, template, machine, *_, identity = component.resources
    reference = {"kind": "AcmeIdentity", "name": "acme"}

    assert sample_spec(cluster, made)["identityRef"] == reference
    assert sample_spec(template, made)["identityRef"] == reference
    assert "identityRef" not in sample_spec(machine, made)
    assert sample_spec(identity, made) == {
        "secretRef": {"name": "acme-credentials"},
        "allowedNamespaces": {"list": ["default"]},
    }
    assert build_topology(component, made).cluster_spec["identityRef"] == reference


def test_an_endpoint_is_asked_for_where_the_provider_has_none() -> None:
    made = provider()
    assert build_topology(made.components[0], made).endpoint
    bare = provider(features=frozenset())
    assert not build_topology(bare.components[0], bare).endpoint


def test_escaping_reaches_everything() -> None:
    assert escape_dollars({"$a": ["$", ("b$",), 1, None]}) == {"$$a": ["$$", ["b$$"], 1, None]}


def test_rows_describe_limits_in_words() -> None:
    fields = (
        SIZE,
        field("count", type="integer", minimum=1, maximum=9, default=3),
        field("tags", False, type="array", maxItems=4, items={"type": "string"}),
        field("notes", False, type="object", additionalProperties={"type": "string"}),
        field("port", False, **{"x-kubernetes-int-or-string": True}),
        REGION,
    )
    rows = {row.path: row for row in list_field_rows(resource(fields=fields))}

    assert rows["spec.size"].required
    assert rows["spec.size"].description == "How large."
    assert rows["spec.count"].limits == "default 3; 1 to 9"
    assert (rows["spec.tags"].type, rows["spec.tags"].limits) == (
        "list of string",
        "at most 4 items",
    )
    assert rows["spec.notes"].type == "map of string"
    assert rows["spec.port"].type == "integer or string"
    assert rows["spec.region"].limits == "one of north, south; cannot be changed"
    assert rows["status.initialization.provisioned"].type == "boolean"
    assert not any(path.startswith("status.conditions[]") for path in rows)


def test_a_template_has_no_rows_of_its_own() -> None:
    assert list_field_rows(resource("AcmeMachineTemplate", Role.INFRA_MACHINE_TEMPLATE)) == ()


def test_classes_and_flavors_take_the_kinds_of_machines_in_turn() -> None:
    made = provider()._replace(
        flavors=(DnsLabel("topology"), DnsLabel("metal"), DnsLabel("edge")),
        cluster_classes=(DnsLabel("acme"), DnsLabel("acme-metal")),
    )
    component = made.components[0]
    server = resource("AcmeServer", fields=())
    template = resource("AcmeServerTemplate", Role.INFRA_MACHINE_TEMPLATE, ())
    both = component._replace(resources=(*component.resources, server, template))

    def kind(flavor: str = "", cluster_class: str = "") -> str:
        template = build_topology(both, made, flavor, cluster_class).machine_template
        assert template is not None
        return template.kind

    assert [kind(), kind("topology"), kind("metal"), kind("edge")] == [
        "AcmeMachineTemplate",
        "AcmeMachineTemplate",
        "AcmeServerTemplate",
        "AcmeServerTemplate",
    ]
    assert kind(cluster_class="acme") == "AcmeMachineTemplate"
    assert kind(cluster_class="acme-metal") == "AcmeServerTemplate"


def test_classes_and_flavors_take_the_kinds_of_clusters_in_turn() -> None:
    made = provider()._replace(
        flavors=(DnsLabel("topology"), DnsLabel("hosted")),
        cluster_classes=(DnsLabel("acme"), DnsLabel("acme-hosted")),
    )
    component = made.components[0]
    hosted = resource("AcmeHostedCluster", Role.INFRA_CLUSTER, (SIZE,), features=frozenset())
    template = resource("AcmeHostedClusterTemplate", Role.INFRA_CLUSTER_TEMPLATE, (SIZE,))
    both = component._replace(resources=(*component.resources, hosted, template))
    own, other = build_topology(both, made), build_topology(both, made, "hosted")

    assert (own.cluster.kind, own.endpoint) == ("AcmeCluster", True)
    assert (other.cluster.kind, other.endpoint) == ("AcmeHostedCluster", False)
    assert other.machine is not None
    assert (other.cluster_template, other.machine.kind) == (template, "AcmeMachine")
    assert [each.field for each in other.cluster_variables] == ["size"]
    assert (
        build_topology(both, made, cluster_class="acme-hosted").cluster.kind == "AcmeHostedCluster"
    )


def test_examples_are_in_the_version_that_core_chooses() -> None:
    """The greatest served one, regardless of storage and of its position.

    Proves: GEN-03.
    """
    stored, greatest = version("v1beta2"), version("v1beta10", storage=False)
    unserved = version("v1", storage=False)._replace(served=False)
    versions = (greatest, stored, version("v2alpha1", storage=False), unserved)

    assert get_preferred_version(resource()._replace(versions=versions)) == "v1beta10"


def test_optional_fields_are_set_until_a_spec_has_enough() -> None:
    fields = (
        field("odd", required=False, type="string", pattern="^(?i)x$", minLength=400),
        field("zone", required=False, type="string"),
        field("cores", type="integer"),
        field("free", required=False, type="boolean"),
    )
    component, made = with_machine_fields(*fields)
    options = CrdOptions(part_limits={"spec.template.spec": {"minProperties": 2}})
    limited = tuple(
        each._replace(options=options) if each.kind == "AcmeMachineTemplate" else each
        for each in component.resources
    )
    component = component._replace(resources=limited)
    made = made._replace(components=(component, *made.components[1:]))
    parts = build_topology(component, made)

    assert parts.machine_spec == parts.machine_class_spec == {"zone": "example", "cores": 1}
    assert {v.name for v in parts.machine_variables} == {"cores"}


def test_a_sample_of_machines_has_what_only_their_template_requires() -> None:
    component, made = with_machine_fields(field("size", required=False, type="string"))
    resources = tuple(
        (
            each._replace(spec_fields=(field("size", type="string"),))
            if each.role is Role.INFRA_MACHINE_TEMPLATE
            else each
        )
        for each in component.resources
    )
    parts = build_topology(component._replace(resources=resources), made)
    assert list(parts.machine_spec) == ["size"]
    assert list(parts.machine_class_spec) == ["size"]


def test_a_sample_of_a_cluster_has_contract_fields_that_the_author_requires() -> None:
    made = provider()
    endpoint = OwnField({"type": "object", "properties": {}}, required=True)
    own = ContractFields({"controlPlaneEndpoint": endpoint}, {})
    component = made.components[0]
    resources = tuple(
        each._replace(contract_fields=own) if each.role is Role.INFRA_CLUSTER else each
        for each in component.resources
    )
    parts = build_topology(component._replace(resources=resources), made)
    assert parts.cluster_spec["controlPlaneEndpoint"] == {}


def test_a_sample_of_a_template_has_contract_fields_that_only_the_template_requires() -> None:
    made = provider()
    endpoint = OwnField({"type": "object", "properties": {}}, required=True)
    own = ContractFields({"controlPlaneEndpoint": endpoint}, {}, has_own_spec=True)
    component = made.components[0]
    resources = tuple(
        each._replace(contract_fields=own) if each.role is Role.INFRA_CLUSTER_TEMPLATE else each
        for each in component.resources
    )
    parts = build_topology(component._replace(resources=resources), made)
    assert parts.cluster_class_spec == {"controlPlaneEndpoint": {}, "region": "north"}
    assert parts.cluster_spec == {"region": "${ACME_CLUSTER_REGION:=north}"}
