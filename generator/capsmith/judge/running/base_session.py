"""The base of all check sessions: a namespace, a history of its objects, and ways to wait."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient, StaleError
from capsmith.clusters.processes.wait import eventually
from capsmith.errors import Refused
from capsmith.judge.running.contract import CoreObjects, find_condition
from capsmith.judge.running.history import History, WatchedKind
from capsmith.judge.running.manager_logs import LogSource, ManagerLogs
from capsmith.judge.running.model import Skipped, Timing, Violated


class ManagerProcess(Protocol):
    """Protocol for a provider's manager process that the conformance run started itself."""

    def kill(self) -> None:
        """Kill the process, simulating a crash."""

    def start(self) -> None:
        """Start the process again and wait until it is ready.

        Raises CapsmithError if it does not become ready.
        """


@dataclass
class BaseSession:
    """A run against one provider. Subclasses create the objects for the roles that they check."""

    client: KubeClient
    core: CoreObjects
    contract: str
    timing: Timing
    manager: ManagerProcess | None = field(default=None, kw_only=True)
    failures: dict[str, str] = field(default_factory=dict, kw_only=True)
    """Reasons why shared objects could not be created, by step name."""
    needed: list[JSON] = field(default_factory=list, kw_only=True)
    """Objects to apply first, such as identities and their Secrets.

    An object of a namespaced kind without a namespace is created in the run's namespace.
    """
    _done: set[str] = field(default_factory=set, kw_only=True)
    _has_namespace: bool = field(default=False, kw_only=True)
    _applied: list[JSON] = field(default_factory=list, kw_only=True)
    """Objects that the run created outside its namespace."""

    secrets: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Secret values that the managers know and that no report may contain."""
    logs: LogSource = field(default_factory=lambda: ManagerLogs(dict), kw_only=True)

    def __post_init__(self) -> None:
        self.history = History(self.client, self.namespace, self.kinds())

    def kinds(self) -> list[WatchedKind]:
        """Return the kinds whose objects the run records in its history."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Create objects that all checks need, such as bootstrap data.

        :meth:`start` calls this method after creating the objects in ``needed`` and before
        recording anything.
        """

    def clean_up(self) -> None:
        """Delete all objects that the run created, and its namespace."""
        raise NotImplementedError

    @property
    def namespace(self) -> str:
        """Return the namespace in which the run creates its objects."""
        return self.core.namespace

    def create_namespace(self) -> None:
        """Create the run's namespace.

        Raises Refused if it exists, because the run would delete it at the end.
        """
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        try:
            self.client.create(namespace)
        except StaleError as error:
            raise Refused(
                "conformance-namespace",
                f"namespace {self.namespace} already exists",
                hint="Wait for the other run to end, or delete what it left.",
            ) from error
        self._has_namespace = True

    def start(self) -> None:
        """Create the objects that all checks need, and start recording object states."""
        for each in self.needed:
            self.apply(each)
        self.prepare()
        self.history.start()

    def apply(self, obj: JSON) -> None:
        """Apply an object that the provider needs, such as credentials."""
        version, kind, metadata = obj["apiVersion"], obj["kind"], obj["metadata"]
        is_namespaced = self.client.resolve(version, kind).namespaced
        if is_namespaced and not metadata.get("namespace"):
            metadata = {**metadata, "namespace": self.namespace}
            obj = {**obj, "metadata": metadata}
        namespace = metadata.get("namespace")
        # Objects inside the namespace are deleted with it; an object that already existed is the
        # user's.
        is_inside = is_namespaced and namespace == self.namespace
        if not is_inside and self.client.find(version, kind, metadata["name"], namespace) is None:
            self._applied.append(obj)
        self.client.apply(obj)

    def remove_applied(self) -> None:
        """Delete the objects that :meth:`apply` created outside the run's namespace."""
        while self._applied:
            self.client.delete(self._applied.pop())

    def wait_removed(self) -> None:
        """Wait until the namespace no longer exists, so that another run can create it.

        Returns without an error on a timeout.
        """
        if not self._has_namespace:
            return  # that of another run
        with suppress(TimeoutError):
            eventually(
                lambda: self.client.find("v1", "Namespace", self.namespace) is None,
                timeout=self.timing.cleanup,
            )

    def run_once(self, step: str, create: Callable[[], None]) -> None:
        """Call ``create``, a step that several checks need, unless it has already succeeded.

        If the step fails, its exception is raised. Later calls then raise Skipped with the reason
        for the failure.
        """
        # The step would only wait in vain again; the first check reports the cause.
        if step in self.failures:
            raise Skipped(f"{step} failed before: {self.failures[step]}")
        # Checks run one after another in one thread, so the set needs no lock.
        if step in self._done:
            return
        try:
            create()
        except (Violated, ApiError) as error:
            # The conditions that follow are in the report of the first check.
            self.failures[step] = str(error).partition("\n")[0]
            raise
        self._done.add(step)

    def wait(
        self, kind: str, name: str, probe: Callable[[JSON], bool], what: str, path: str = ""
    ) -> JSON:
        """Wait until ``probe`` accepts the latest state of an object, and return that state.

        ``what`` and ``path`` describe the expected state and its field in the report.  Raises
        Violated with the object's conditions on a timeout.
        """

        def found() -> JSON | None:
            obj = self.history.latest(kind, name)
            return obj if obj is not None and probe(obj) else None

        seconds = self.patience(name, what)
        obj = self.history.wait(found, seconds)
        if obj is None:
            raise Violated(
                f"{what}: not within {seconds:g} s{self._state(kind, name)}",
                self.subject(kind, name),
                path,
                self._hint(kind, name),
            )
        return obj

    def wait_deleted(self, kind: str, name: str, what: str) -> None:
        """Wait until an object no longer exists.

        Raises Violated on a timeout, with ``what``, the object's conditions and its finalizers.
        """
        seconds = self.patience(name, what)
        if not self.history.wait(lambda: self.history.latest(kind, name) is None, seconds):
            raise Violated(
                f"{what}: not within {seconds:g} s{self._state(kind, name)}",
                self.subject(kind, name),
                "metadata.finalizers",
            )

    def patience(self, name: str, what: str) -> float:
        """Return the number of seconds to wait for an object to reach a state.

        ``what`` describes that state.
        """
        return self.timing.patience

    def stays(self, probe: Callable[[], bool]) -> bool:
        """Return whether ``probe`` stays true for ``Timing.quiet`` seconds.

        ``probe`` is called after every recorded change, so even a momentary violation is noticed.
        It must not write.
        """
        # The inverse of a wait: the quiet time passes in full unless the probe fails earlier.
        return not self.history.wait(lambda: not probe(), self.timing.quiet)

    def settle(self) -> None:
        """Wait for ``Timing.quiet`` seconds, giving a faulty manager time to violate a rule."""
        self.stays(lambda: True)

    def latest(self, kind: str, name: str) -> JSON:
        """Return the latest recorded state of an object, which may be older than the last request.

        Raises Violated if the object does not exist.
        """
        obj = self.history.latest(kind, name)
        if obj is None:
            raise Violated("it was deleted", self.subject(kind, name))
        return obj

    def list_existing(self, kind: str) -> list[JSON]:
        """Return the latest recorded states of a kind's existing objects, sorted by name."""
        # An object may be deleted after the names were read.
        found = (self.history.latest(kind, name) for name in self.history.names(kind))
        return [obj for obj in found if obj is not None]

    def subject(self, kind: str, name: str) -> str:
        """Return an object's name for reports, such as ``AcmeMachine conformance-1/main-0``."""
        return f"{kind} {self.namespace}/{name}"

    def _hint(self, kind: str, name: str) -> str:
        """Return what to do if an object says in Ready why it waits, otherwise an empty string.

        The hints of rules are about fields that a manager does not write; such a manager does.
        """
        ready = find_condition(self.history.latest(kind, name) or {}, "Ready") or {}
        reason = ready.get("reason")
        if ready.get("status") == "True" or not reason:
            return ""
        return (
            f"The condition Ready says why: {reason}. What the provider needs, such as an identity"
            f" and its Secret, is applied with --apply, and must be usable in the namespace"
            f" {self.namespace} and in those whose names begin with it."
        )

    def _state(self, kind: str, name: str) -> str:
        """Return the conditions and finalizers of an object, for the report of a timeout."""
        obj = self.history.latest(kind, name)
        if obj is None:
            return "; it does not exist"
        conditions = (obj.get("status") or {}).get("conditions") or []
        shown = [
            f"{each.get('type')}={each.get('status')} {each.get('reason', '')}:"
            f" {each.get('message', '')}".rstrip(": ")
            for each in conditions
        ]
        finalizers = ", ".join(obj["metadata"].get("finalizers") or ["none"])
        return "".join(f"\n{line}" for line in [*shown, f"finalizers: {finalizers}"])
