"""Data for clusterctl users: release URLs, and variables for fields in cluster templates."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from capsmith.output.example import build_field_example
from capsmith.provider.fields import Field
from capsmith.provider.model import Component, Provider, Resource
from capsmith.safetext import RepositoryUrl, SafeText

_PLAIN_DEFAULT = re.compile(r"[A-Za-z0-9._/:+-]+")


class Hosting(StrEnum):
    """Types of release hosts that clusterctl distinguishes (CC-56, CC-60)."""

    GITHUB = "github"
    GITLAB = "gitlab"
    OTHER = "other"
    """Any other host. clusterctl cannot download from it, but it can read a local folder."""


class TemplateVariable(NamedTuple):
    """A variable in the cluster templates that no clusterctl option sets."""

    name: SafeText
    default: SafeText
    resource: Resource
    field: Field

    @property
    def description(self) -> str:
        """Return the author's description of the field, or else the field's name and kind."""
        words = f"{self.field.name} of {self.resource.kind}"
        return str(self.field.schema.get("description", words))


def identify_hosting(repository: str) -> Hosting:
    """Return the type of host, which determines how clusterctl downloads releases."""
    host = urlsplit(repository).netloc
    if host == "github.com":
        return Hosting.GITHUB
    return Hosting.GITLAB if host.startswith("gitlab.") else Hosting.OTHER


def release_url(provider: Provider, component: Component) -> SafeText:
    """Return the component's ``url`` for clusterctl's configuration (CC-56, CC-60).

    On GitHub, the URL refers to the latest release, and on GitLab to the first release of the
    newest series.  For any other host, it is a placeholder for a local folder's path.
    """
    release = provider.releases[0]
    version = f"v{release.major}.{release.minor}.0"
    file = component.components_file
    where = identify_hosting(provider.repository)
    if where is Hosting.GITHUB:
        return SafeText(f"{provider.repository}/releases/latest/{file}")
    if where is Hosting.GITLAB:
        return SafeText(f"{_packages(provider.repository)}/{provider.name}/{version}/{file}")
    return SafeText(f"/path/to/releases/{component.label}/{version}/{file}")


def build_package_url(provider: Provider) -> SafeText:
    """Return the URL of the provider's generic package on GitLab, without a version."""
    return SafeText(f"{_packages(provider.repository)}/{provider.name}")


def _packages(repository: RepositoryUrl) -> str:
    url = urlsplit(repository)
    project = quote(url.path.strip("/"), safe="")
    return f"https://{url.netloc}/api/v4/projects/{project}/packages/generic"


def build_template_variable(field: Field, resource: Resource) -> TemplateVariable | None:
    """Return the variable for ``field``, or None if the field's example is not a plain string."""
    value = build_field_example(field)
    if not isinstance(value, str) or not _PLAIN_DEFAULT.fullmatch(value):
        return None
    name = SafeText(f"{resource.module.upper()}_{field.attribute.upper()}")
    return TemplateVariable(name, SafeText(value), resource, field)
