"""A folder of release assets, and its place in a clusterctl repository."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from capsmith.clusters.processes.component import Component, component_types
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.repository import Repository, dump, load, localised
from capsmith.errors import UnreadableInput


@dataclass(frozen=True)
class ProviderRelease:
    """The assets of one release: components, metadata.yaml, templates, ClusterClasses."""

    folder: Path
    version: str
    """A semantic version: `v1.2.3`."""

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """What clusterctl installs as one provider each, infrastructure first."""
        return tuple(Component(self.folder, type) for type in component_types(self.folder))

    def component(self, type: str) -> Component:
        """Return the component of a type; raises UnreadableInput without one."""
        for component in self.components:
            if component.type == type:
                return component
        raise UnreadableInput(
            "release-component",
            f"no {type}-components.yaml",
            file=str(self.folder),
            hint="Specify the folder with the assets of a release.",
        )

    def add_to(
        self,
        repository: Repository,
        ca_bundle: str,
        change: Callable[[str, str], str] = lambda name, text: text,
    ) -> None:
        """Add the release to a clusterctl repository, with webhooks that call this machine.

        ``change`` gets name and text of each asset, and returns its text in the repository.
        """
        paths = [path for path in sorted(self.folder.iterdir()) if path.is_file()]
        files = {path.name: change(path.name, path.read_text()) for path in paths}
        for component in self.components:
            if component.has_webhooks:
                documents: list[JSON] = load(files[component.file])
                local = [localised(each, ca_bundle, component.port_variable) for each in documents]
                files = {**files, component.file: dump(local)}
        for component in self.components:
            repository.add(component.label, self.version, component.file, files)


def newest_version(folder: Path) -> str:
    """Return the first version of the newest series in metadata.yaml.

    Raises UnreadableInput if no such file, or no series in it.
    """
    path = folder / "metadata.yaml"
    hint = "Specify the folder with the assets of a release."
    if not path.is_file():
        raise UnreadableInput("release-metadata", "no such file", file=str(path), hint=hint)
    try:
        (document,) = load(path.read_text(encoding="utf-8"))
        series = document["releaseSeries"]
        found = [(int(each["major"]), int(each["minor"])) for each in series]
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        message = f"no valid releaseSeries: {error}"
        raise UnreadableInput("release-metadata", message, file=str(path), hint=hint) from error
    if not found:
        raise UnreadableInput("release-metadata", "no releaseSeries", file=str(path), hint=hint)
    major, minor = max(found)
    return f"v{major}.{minor}.0"
