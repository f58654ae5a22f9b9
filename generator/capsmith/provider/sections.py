"""The sections in provider.yaml, and the component that clusterctl installs for each.

A component's folder and namespace never depend on other components, so adding a component moves
nothing.  The key ``components`` combines sections into one component, whose folder, namespace and
type come from the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ComponentSection, Section


class SectionType(NamedTuple):
    """A provider type as clusterctl defines it (CC-20, CC-50, CC-51)."""

    section: ComponentSection
    """The section's key in provider.yaml."""
    type: str
    """Provider type. The manifest label and the components file's name start with it."""
    group: str
    """Default API group; empty for sections that cannot have kinds (CRD-05)."""
    namespace: str
    """Default namespace; ``{name}`` is replaced with the provider's name."""
    config: str
    """Path to the folder of the kustomize tree in the repository."""
    words: str
    """Noun phrase for the section's component in sentences."""
    kind: str
    """Provider type in clusterctl's configuration (CC-50)."""

    @property
    def attribute(self) -> str:
        """Return the provider type as a Python identifier, such as ``control_plane``."""
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
"""Section types by section name, in the order in which clusterctl installs components."""


def combine(
    sections: Sequence[SectionType], combined: Mapping[Section, Iterable[Section]]
) -> tuple[tuple[SectionType, ...], ...]:
    """Group sections into components.

    ``combined`` maps the first section of a component, which determines its type, to the other
    sections.
    """
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
