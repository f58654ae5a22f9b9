"""What must hold at any time, and what must hold when everything has settled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from benchmarks.soak.site import Site
from capsmith.clusters.processes.wait import NotYet

_Object = dict[str, Any]


class Harm(StrEnum):
    """Kinds of violations."""

    LOST = "lost"
    LEAKED = "leaked"
    TWICE = "created twice"
    OTHER = "other violations"


class Violation(NamedTuple):
    """One violation of an invariant."""

    harm: Harm
    what: str


class Invariants:
    """Checks of one site; what was found wrong stays in ``violations``."""

    def __init__(self, site: Site) -> None:
        self.violations: list[Violation] = []
        self._site = site
        self._ids: dict[str, str] = {}

    def check(self) -> None:
        """Check what must hold at any time."""
        machines = self._site.machines()
        for name, obj in machines.items():
            found = obj["spec"].get("providerID")
            before = self._ids.setdefault(name, found) if found else None
            if before is not None and found != before:
                self.violated(Harm.OTHER, f"{name}: provider id {before} became {found}")
        for name in self._site.live - set(machines):
            self.violated(Harm.LOST, name)
        created = Counter(each for each in self._site.journal() if each.startswith("create server"))
        for line, times in created.items():
            if times > 1:
                self.violated(Harm.TWICE, f"{line}: {times} times")

    def settled(self) -> bool:
        """Whether all objects are in their final states; raises NotYet with the differences."""
        self._site.forget_gone()
        found = list(self._differences())
        if found:
            raise NotYet("; ".join(f"{harm}: {what}" for harm, what in found[:8]))
        return True

    def not_settled(self) -> None:
        """Record all differences from the final states as violations."""
        for harm, what in self._differences():
            self.violated(harm, what)

    def check_end(self) -> None:
        """Check that nothing is left of what was deleted."""
        for name in ("servers", "clusters"):
            for path in sorted((self._site.cloud / name).glob("*.json")):
                self.violated(Harm.LEAKED, f"{name}: {path.name}")
        for name in sorted(self._site.machines()):
            self.violated(Harm.OTHER, f"{name}: is not deleted")

    def violated(self, harm: Harm, what: str) -> None:
        """Record a violation once."""
        if Violation(harm, what) not in self.violations:
            self.violations.append(Violation(harm, what))

    def _differences(self) -> Iterator[Violation]:
        site = self._site
        machines, servers = site.machines(), site.servers()
        for name in sorted(site.leaving):
            yield Violation(Harm.OTHER, f"{name}: is not deleted")
        for name in sorted(site.live & set(machines)):
            server = servers.get(name)
            provider_id = json.loads(server.read_text())["provider_id"] if server else ""
            for what in _wrong_state(machines[name], provider_id, name in site.vanished):
                yield Violation(Harm.OTHER, f"{name}: {what}")
        for name in sorted(set(servers) - site.live - site.leaving):
            yield Violation(Harm.LEAKED, name)
        leaders = sum(each.leads for each in site.managers)
        if leaders != 1:
            yield Violation(Harm.OTHER, f"{leaders} managers lead")
        for each in site.managers:
            if not each.is_alive:
                yield Violation(Harm.OTHER, f"{each.name}: is not alive")


def _wrong_state(obj: _Object, provider_id: str, is_vanished: bool) -> Iterator[str]:
    status = obj.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    ready = conditions.get("Ready", {})
    found = (ready.get("status"), ready.get("reason"))
    if is_vanished and provider_id:
        yield "has a server again"
    if not status.get("initialization", {}).get("provisioned"):
        yield f"is not provisioned: {found}"
    if found != (("False", "ServerNotFound") if is_vanished else ("True", "Ready")):
        yield f"Ready is {found}"
    if not is_vanished and obj["spec"].get("providerID") != provider_id:
        yield f"{obj['spec'].get('providerID')} is not its server {provider_id}"
