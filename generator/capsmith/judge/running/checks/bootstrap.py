"""Check bootstrap configurations: the conditions that they wait for, and the data they produce."""

from __future__ import annotations

import base64
from functools import partial

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.shared import check_conditions, wait_for_condition
from capsmith.judge.running.cluster_session import (
    OWNERLESS_CONFIG,
    WHOLE,
    ClusterSession,
    data_name,
    data_path,
    is_data_created,
)
from capsmith.judge.running.contract import PAUSED, V1BETA1, find_condition
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.objects import CLUSTER_NAME

_SENTINEL = "bootstrap-success.complete"
_SECRET_TYPE = "cluster.x-k8s.io/secret"
_FORMATS = ("", "cloud-config", "ignition")


def _ownerless(session: ClusterSession) -> None:
    # Created first: once the other configurations have data, the manager has had time for this one.
    session.ensure_whole_cluster()
    for state in session.history.states(session.config_kind, OWNERLESS_CONFIG):
        if data_name(state) or is_data_created(state, session.contract):
            message = "it reports data although no Machine owns it"
            raise Violated(message, session.subject(session.config_kind, OWNERLESS_CONFIG))


def _secret(session: ClusterSession) -> None:
    for machine, config in session.configs():
        name = data_name(config)
        subject = session.subject("Secret", name)
        where = session.subject(config["kind"], config["metadata"]["name"])
        if not name:
            raise Violated("it no longer names its Secret", where, "status.dataSecretName")
        secret = session.client.find("v1", "Secret", name, session.namespace)
        if secret is None:
            raise Violated(f"Secret {name} does not exist", where, "status.dataSecretName")
        if machine["spec"]["bootstrap"].get("dataSecretName") != name:
            message = f"core copied a name other than {name}"
            where = session.subject("Machine", machine["metadata"]["name"])
            raise Violated(message, where, "spec.bootstrap.dataSecretName")
        for problem, path in _secret_problems(secret, config):
            raise Violated(problem, subject, path)


def _secret_problems(secret: JSON, config: JSON) -> list[tuple[str, str]]:
    metadata = secret["metadata"]
    owners = [
        each["uid"] for each in metadata.get("ownerReferences") or [] if each.get("controller")
    ]
    problems = []
    if secret.get("type") != _SECRET_TYPE:
        problems.append((f"the type is {secret.get('type')}, not {_SECRET_TYPE}", "type"))
    if (metadata.get("labels") or {}).get(CLUSTER_NAME) != WHOLE:
        problems.append((f"the label {CLUSTER_NAME} does not name the cluster", "metadata.labels"))
    if owners != [config["metadata"]["uid"]]:
        problems.append(("the configuration does not control it", "metadata.ownerReferences"))
    if not _value(secret, "value"):
        problems.append(("the key value has no data", "data.value"))
    if _value(secret, "format") not in _FORMATS:
        problems.append((f"the format is {_value(secret, 'format')}", "data.format"))
    return problems


def _once(session: ClusterSession) -> None:
    for _, config in session.configs():
        kind, name = config["kind"], config["metadata"]["name"]
        states = session.history.states(kind, name)
        created = [is_data_created(state, session.contract) for state in states]
        # Core copies the name when it is first reported, so withdrawing a report is too late.
        if False in created[created.index(True) :]:
            message = "the data were created, but later lost"
            raise Violated(message, session.subject(kind, name), data_path(session.contract))
        if any(flag and not data_name(state) for flag, state in zip(created, states, strict=True)):
            message = "the data were reported as created before their Secret was named"
            raise Violated(message, session.subject(kind, name), "status.dataSecretName")
        if len({data_name(state) for state in states} - {""}) > 1:
            message = "the name of the Secret changed"
            raise Violated(message, session.subject(kind, name), "status.dataSecretName")


def _ready(session: ClusterSession) -> None:
    for _, config in session.configs():
        wait_for_condition(session, config, "Ready", "True")


def _conditions(session: ClusterSession) -> None:
    for _, config in session.configs():
        check_conditions(session, config["kind"], config["metadata"]["name"])


def _sentinel(session: ClusterSession) -> None:
    for _, config in session.configs():
        secret = session.client.get("v1", "Secret", data_name(config), session.namespace)
        if _SENTINEL not in _value(secret, "value"):
            subject = session.subject("Secret", secret["metadata"]["name"])
            raise Violated(f"the data do not mention {_SENTINEL}", subject, "data.value")


def _paused(session: ClusterSession) -> None:
    if session.contract == V1BETA1:
        raise Skipped("contract v1beta1 does not fix where the Paused condition is")
    (_, config), *_ = session.configs()
    kind, name = config["kind"], config["metadata"]["name"]
    path = "status.conditions[Paused]"
    for value, status in (("true", "True"), (None, "False")):
        session.client.patch(config, {"metadata": {"annotations": {PAUSED: value}}})
        what = f"the condition Paused is not {status}"
        session.wait(kind, name, partial(_is, status), what, path)


def _is(status: str, obj: JSON) -> bool:
    return (find_condition(obj, "Paused") or {}).get("status") == status


def _value(secret: JSON, key: str) -> str:
    return base64.b64decode((secret.get("data") or {}).get(key) or "").decode(errors="replace")


BOOTSTRAP = (
    ConformanceCheck(
        "bootstrap-waits-for-owner",
        "A bootstrap configuration without a Machine is left alone.",
        ("BC-11", "BC-12"),
        _ownerless,
    ),
    ConformanceCheck(
        "bootstrap-data",
        "Each Machine has a Secret with data, which its bootstrap configuration controls.",
        ("BC-01", "BC-03", "BC-06", "SEC-04"),
        _secret,
    ),
    ConformanceCheck(
        "bootstrap-data-once",
        "Data are reported once, with the name of their Secret, and never change their name.",
        ("BC-01", "BC-03"),
        _once,
    ),
    ConformanceCheck(
        "bootstrap-ready",
        "A bootstrap configuration with data has the condition Ready.",
        ("BC-09",),
        _ready,
    ),
    ConformanceCheck(
        "bootstrap-conditions",
        "The conditions of a bootstrap configuration have the shape of the contract.",
        ("ST-01", "ST-02"),
        _conditions,
    ),
    ConformanceCheck(
        "bootstrap-sentinel",
        "The data create the sentinel file on the machine.",
        ("BC-13",),
        _sentinel,
    ),
    ConformanceCheck(
        "bootstrap-paused",
        "The condition Paused of a bootstrap configuration follows the pause.",
        ("ST-08",),
        _paused,
    ),
)
