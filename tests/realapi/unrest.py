"""Other clients that change, delete and create objects while these are migrated."""

from __future__ import annotations

import itertools
import threading
from types import TracebackType
from typing import Self

from capsmith.clusters.processes.kube import JSON, ApiError
from tests.realapi.migrating import NEW, OLD, Releases, named

_KIND = "HarbourMachine"


class Unrest:
    """A thread that goes through the machines from last to first, in both versions by turns."""

    def __init__(self, releases: Releases, machines: int) -> None:
        self._client, self._releases = releases.client, releases
        self._names = [f"m{number}" for number in reversed(range(machines))]
        self._labelled: set[str] = set()
        self._deleted: set[str] = set()
        self._made: set[str] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Finish the current change, and stop."""
        self._end.set()
        self._thread.join()

    def check(self) -> None:
        """Check that all changes are still in effect, and that nothing else has happened."""
        found = {obj["metadata"]["name"]: obj for obj in self._releases.objects(_KIND, NEW)}
        assert len(self._labelled) > 10
        assert len(self._deleted) > 10
        assert set(found) == ({*self._names} - self._deleted) | self._made
        for name, obj in found.items():
            labels = obj["metadata"].get("labels", {})
            assert labels == ({"by": "unrest"} if name in self._labelled else {}), name
            assert obj["metadata"]["generation"] == 1, name

    def _run(self) -> None:
        versions = itertools.cycle((OLD, NEW))
        for number, (name, version) in enumerate(zip(self._names, versions, strict=False)):
            if self._end.is_set():
                return
            while not self._did(number, named(_KIND, name, version)):
                if self._end.wait(0.2):
                    return

    def _did(self, number: int, machine: JSON) -> bool:
        """Whether it was possible: without a webhook it is not."""
        name = machine["metadata"]["name"]
        try:
            if number % 3 == 0:
                self._client.delete(machine)
                self._deleted.add(name)
            elif number % 3 == 1:
                self._client.patch(machine, {"metadata": {"labels": {"by": "unrest"}}})
                self._labelled.add(name)
            else:
                spec = {"size": "s", "image": "i"}
                self._client.create(named(_KIND, f"{name}-new", NEW) | {"spec": spec})
                self._made.add(f"{name}-new")
        except ApiError as error:
            if error.status < 500 and error.status != 429:
                raise
            return False
        return True
