"""What must hold at any time, and what must hold when everything has settled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.soak.site import Site
from tests.e2e.harness.wait import NotYet

_Object = dict[str, Any]


class Invariants:
    """Checks of one site; what was found wrong stays in ``violations``."""

    def __init__(self, site: Site) -> None:
        self.violations: list[str] = []
        self._site = site
        self._ids: dict[str, str] = {}

    def check(self) -> None:
        """Check what must hold at any time."""
        machines = self._site.machines()
        for name, obj in machines.items():
            found = obj["spec"].get("providerID")
            before = self._ids.setdefault(name, found) if found else None
            if before is not None and found != before:
                self._violated(f"{name}: provider id {before} became {found}")
        for name in self._site.live - set(machines):
            self._violated(f"{name}: is lost")
        created = Counter(each for each in self._site.journal() if each.startswith("create server"))
        for line, times in created.items():
            if times > 1:
                self._violated(f"{line}: {times} times")

    def settled(self) -> bool:
        """Whether all objects are in their final states; raises NotYet with the differences."""
        self._site.forget_gone()
        found = list(self._differences())
        if found:
            raise NotYet("; ".join(found[:8]))
        return True

    def _differences(self) -> Iterator[str]:
        site = self._site
        machines, servers = site.machines(), site.servers()
        yield from (f"{name}: is not deleted" for name in site.leaving)
        for name in sorted(site.live & set(machines)):
            server = servers.get(name)
            provider_id = json.loads(server.read_text())["provider_id"] if server else ""
            yield from _wrong_state(name, machines[name], provider_id, name in site.vanished)
        for name in sorted(set(servers) - site.live):
            yield f"{name}: its server is leaked"
        leaders = sum(each.leads for each in site.managers)
        if leaders != 1:
            yield f"{leaders} managers lead"
        yield from (f"{each.name}: is not alive" for each in site.managers if not each.is_alive)

    def _violated(self, what: str) -> None:
        if what not in self.violations:
            self.violations.append(what)


def _wrong_state(name: str, obj: _Object, provider_id: str, is_vanished: bool) -> Iterator[str]:
    status = obj.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    ready = conditions.get("Ready", {})
    found = (ready.get("status"), ready.get("reason"))
    if is_vanished and provider_id:
        yield f"{name}: has a server again"
    if not status.get("initialization", {}).get("provisioned"):
        yield f"{name}: is not provisioned: {found}"
    if found != (("False", "ServerNotFound") if is_vanished else ("True", "Ready")):
        yield f"{name}: Ready is {found}"
    if not is_vanished and obj["spec"].get("providerID") != provider_id:
        yield f"{name}: {obj['spec'].get('providerID')} is not its server {provider_id}"
