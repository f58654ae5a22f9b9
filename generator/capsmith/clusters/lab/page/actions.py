"""The actions on the page of a lab with a simulated cloud. Each has an equivalent shell command.

Only these actions can be requested, and only while they are offered.  A page for a real cloud, or
for a cluster other than the lab's own, offers none.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from capsmith.clusters.conditions import JSON, get_mapping
from capsmith.clusters.lab.demo import find_kubectl_command
from capsmith.clusters.lab.folder import LabFolder, is_held
from capsmith.clusters.lab.page.model.store import ObjectStore, StoredObject, list_owners
from capsmith.clusters.lab.state import RunState, read_lab, read_run, write_text
from capsmith.clusters.lab.supervision import forget_kill, record_kill
from capsmith.clusters.processes.kube import KubeClient

_PAUSED = "cluster.x-k8s.io/paused"
_FAULTS = (
    ("error", "Take the cloud away", "Bring the cloud back"),
    ("hang", "Let the cloud hang", "Let the cloud answer again"),
    ("refuse", "Refuse logins", "Accept logins again"),
)
"""Fault of the simulated cloud, and the titles of the actions that begin and end it."""


@dataclass(frozen=True)
class Action:
    """An action on the lab's page, such as deleting an object or killing a manager."""

    id: str
    title: str
    command: str
    """Shell command that has the same effect."""
    run: Callable[[], object]
    """Function that runs the action. It raises ApiError, OSError or HTTPException if it fails."""

    def to_data(self) -> JSON:
        """Return the action as JSON data for the browser."""
        return {"id": self.id, "title": self.title, "command": self.command}


class Actions(Protocol):
    """Provides the actions that a lab's page offers for the lab and for each object."""

    def list_for_lab(self) -> list[Action]:
        """Return the actions that affect the lab as a whole."""

    def list_for_object(self, store: ObjectStore, found: StoredObject) -> list[Action]:
        """Return the actions that affect an object."""


class NoActions:
    """Offers no actions, which makes a lab's page read-only."""

    def list_for_lab(self) -> list[Action]:
        """Return an empty list: a read-only page has no actions."""
        return []

    def list_for_object(self, store: ObjectStore, found: StoredObject) -> list[Action]:
        """Return an empty list: a read-only page has no actions."""
        return []


class LabActions:
    """The actions in a lab. There are none unless the lab's cloud is simulated."""

    def __init__(self, client: KubeClient, lab: LabFolder) -> None:
        self._client = client
        self._lab = lab
        # The client keeps its cluster, even if another lab takes the place of this one.
        self._state = state = read_lab(lab.state)
        self._lost: set[str] = set()
        """Provider ids of servers that this page has lost."""
        kubeconfig = shlex.quote(state.kubeconfig) if state is not None else ""
        self._kubectl = f"{find_kubectl_command()} --kubeconfig {kubeconfig}"

    def list_for_lab(self) -> list[Action]:
        """Return the actions that kill managers or change the simulated cloud's faults."""
        if not self._is_simulated():
            return []
        return [*self._kill_managers(), *self._change_faults()]

    def list_for_object(self, store: ObjectStore, found: StoredObject) -> list[Action]:
        """Return the actions that scale, pause or delete an object, or remove its server.

        Empty unless the cloud is simulated and has a server for every machine.
        """
        if not self._is_simulated() or not self._has_all_servers(store):
            return []
        return [
            *self._scale(found),
            *self._pause(found),
            *self._lose_server(store, found),
            self._delete(found),
        ]

    def _is_simulated(self) -> bool:
        state, started = read_lab(self._lab.state), self._state
        if state is None or started is None or state.pid != started.pid:
            return False
        has_cloud = (self._lab.cloud / "servers").is_dir()
        # On a node, managers have neither this folder nor this file of faults.
        return state.simulated and not state.node and has_cloud

    def _has_all_servers(self, store: ObjectStore) -> bool:
        """Return whether the simulated cloud has the server behind each machine.

        If the author has connected a real cloud in the meantime, it does not.
        """
        known = {each.provider_id for each in store.servers or ()} | self._lost
        return all(_find_provider_id(found) in known | {""} for found in store)

    def _kill_managers(self) -> Iterator[Action]:
        run = self._read_run()
        for each in run.components if run is not None else ():
            if each.state == "running" and each.pid > 1 and self._is_manager(each.pid):
                kill = partial(self._kill, each.pid)
                title = f"Kill the {each.name}"
                yield Action(f"kill:{each.pid}", title, f"kill -9 {each.pid}", kill)

    def _read_run(self) -> RunState | None:
        """Return the state of the provider's run, or None if it is not running."""
        return read_run(self._lab.run_state) if is_held(self._lab.run_lock) else None

    def _is_manager(self, pid: int) -> bool:
        """Return whether a process has an environment with this lab's kubeconfigs."""
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        return f"\0KUBECONFIG={self._lab.root}/".encode() in b"\0" + environment

    def _kill(self, pid: int) -> None:
        if self._is_manager(pid):
            # Recorded first: the supervisor may notice the end at once.
            with suppress(OSError):
                record_kill(self._lab.kills, pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                forget_kill(self._lab.kills, pid)

    def _change_faults(self) -> Iterator[Action]:
        path = shlex.quote(str(self._lab.faults))
        run = self._read_run()
        known = run.faults if run is not None else ()
        current = self._read_faults()
        # Faults that the user has written are not replaced.
        if current and current not in {f"{fault}=1" for fault, _, _ in _FAULTS}:
            return
        for fault, begin, end in _FAULTS:
            is_active = current == f"{fault}=1"
            # A runtime library that does not know the fault would fail at each call.
            if not is_active and fault not in known:
                continue
            text, title = ("", end) if is_active else (f"{fault}=1", begin)
            command = f"echo {text} > {path}" if text else f": > {path}"
            yield Action(f"faults:{text}", title, command, partial(self._write_faults, text))

    def _read_faults(self) -> str:
        try:
            return self._lab.faults.read_text(encoding="utf-8").strip()
        except OSError:
            return ""

    def _write_faults(self, text: str) -> None:
        write_text(self._lab.faults, f"{text}\n")

    def _scale(self, found: StoredObject) -> Iterator[Action]:
        replicas = get_mapping(found.data.get("spec")).get("replicas")
        if not isinstance(replicas, int) or _has_controller(found):
            return
        for number in (replicas + 1, replicas - 1):
            if number >= 0:
                yield self._patch(found, f"Scale to {number}", {"spec": {"replicas": number}})

    def _pause(self, found: StoredObject) -> Iterator[Action]:
        metadata, spec = (get_mapping(found.data.get(each)) for each in ("metadata", "spec"))
        if found.key.kind == "Cluster":
            is_paused = bool(spec.get("paused"))
            patch: JSON = {"spec": {"paused": not is_paused}}
        else:
            is_paused = _PAUSED in get_mapping(metadata.get("annotations"))
            patch = {"metadata": {"annotations": {_PAUSED: None if is_paused else ""}}}
        yield self._patch(found, "Resume" if is_paused else "Pause", patch)

    def _lose_server(self, store: ObjectStore, found: StoredObject) -> Iterator[Action]:
        provider_id = _find_provider_id(found)
        for server in store.servers or ():
            if provider_id and server.provider_id == provider_id and server.file:
                path = self._lab.cloud / "servers" / server.file
                command = f"rm {shlex.quote(str(path))}"
                remove = partial(self._remove_server, path, provider_id)
                yield Action(f"lose:{server.file}", "Lose the server", command, remove)

    def _remove_server(self, path: Path, provider_id: str) -> None:
        self._lost.add(provider_id)
        path.unlink(missing_ok=True)

    def _patch(self, found: StoredObject, title: str, patch: JSON) -> Action:
        text = json.dumps(patch, separators=(",", ":"))
        command = self._command(found, "patch", "--type", "merge", "--patch", text)
        return Action(f"patch:{text}", title, command, partial(self._send, found.data, patch))

    def _send(self, obj: JSON, patch: JSON) -> None:
        self._client.patch(obj, patch)

    def _delete(self, found: StoredObject) -> Action:
        command = self._command(found, "delete", "--wait=false")
        return Action("delete", "Delete", command, partial(self._client.delete, found.data))

    def _command(self, found: StoredObject, verb: str, *arguments: str) -> str:
        key = found.key
        namespace = ("--namespace", key.namespace) if key.namespace else ()
        kind = f"{key.kind.lower()}.{key.group}"
        words = shlex.join([verb, *namespace, kind, key.name, *arguments])
        return f"{self._kubectl} {words}"


def _find_provider_id(found: StoredObject) -> str:
    """Return the provider id of the infrastructure of a Machine; empty for other objects."""
    is_machine = any(each.get("kind") == "Machine" for each in list_owners(found.data))
    provider_id = get_mapping(found.data.get("spec")).get("providerID")
    return provider_id if is_machine and isinstance(provider_id, str) else ""


def _has_controller(found: StoredObject) -> bool:
    """Return whether another object decides the size, as a deployment does for its sets."""
    kinds = {each.get("kind") for each in list_owners(found.data) if each.get("controller")}
    return bool(kinds - {"Cluster"})
