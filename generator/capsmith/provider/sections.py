"""The sections of provider.yaml, and the component that clusterctl installs for each.

The folder and namespace of a component never depend on other components, so a provider can gain one
without moving anything.  The key ``components`` combines sections into one component, which takes
folder, namespace and type from its first section.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ComponentSection, Section


class SectionType(NamedTuple):
    """A provider type as clusterctl defines it (CC-20, CC-50, CC-51)."""

    section: ComponentSection
    """Key in provider.yaml."""
    type: str
    """First part of the manifest label and of the components file."""
    group: str
    """API group unless the author gives another; empty where there are no kinds (CRD-05)."""
    namespace: str
    """Namespace unless the author gives another, with ``{name}`` for the provider's."""
    config: str
    """Folder of the kustomize tree."""
    words: str
    """Its name in sentences."""
    kind: str
    """What clusterctl's own configuration calls it (CC-50)."""

    @property
    def attribute(self) -> str:
        """Return the type as a Python name, such as ``control_plane``."""
        return self.type.replace("-", "_")


_CORE = "cluster.x-k8s.io"

SECTION_TYPES: Mapping[str, SectionType] = {
    section_type.section: section_type
    for section_type in (
        SectionType(
            "infrastructure",
            "infrastructure",
            f"infrastructure.{_CORE}",
            "{name}-system",
            "config",
            "infrastructure provider",
            "InfrastructureProvider",
        ),
        SectionType(
            "bootstrap",
            "bootstrap",
            f"bootstrap.{_CORE}",
            "{name}-bootstrap-system",
            "bootstrap/config",
            "bootstrap provider",
            "BootstrapProvider",
        ),
        SectionType(
            "controlPlane",
            "control-plane",
            f"controlplane.{_CORE}",
            "{name}-control-plane-system",
            "control-plane/config",
            "control plane provider",
            "ControlPlaneProvider",
        ),
        SectionType(
            "ipam",
            "ipam",
            f"ipam.{_CORE}",
            "{name}-ipam-system",
            "ipam/config",
            "IPAM provider",
            "IPAMProvider",
        ),
        SectionType(
            "runtimeExtension",
            "runtime-extension",
            "",
            "{name}-runtime-extension-system",
            "runtime-extension/config",
            "runtime extension",
            "RuntimeExtensionProvider",
        ),
        SectionType(
            "addon",
            "addon",
            f"addons.{_CORE}",
            "{name}-addon-system",
            "addon/config",
            "add-on provider",
            "AddonProvider",
        ),
    )
}
"""By section, in the order in which components are installed and shown."""


def combine(
    sections: Sequence[SectionType], combined: Mapping[Section, Iterable[Section]]
) -> tuple[tuple[SectionType, ...], ...]:
    """Group sections into components; the first of each group gives its type."""
    others: dict[str, set[str]] = {
        main: {str(each) for each in parts} - {main} for main, parts in combined.items()
    }
    # A section that another one includes has no component of its own.
    joined = {part for parts in others.values() for part in parts}
    return tuple(
        (main, *(each for each in sections if each.section in others.get(main.section, ())))
        for main in sections
        if main.section not in joined
    )
