"""The Go module of Cluster API's end-to-end specs, as a blueprint."""

from __future__ import annotations

import re

from capsmith.clusters.processes.tools.catalogue import load_releases
from tests.releases.modules import BLUEPRINT


def test_the_module_pins_the_release_of_labs() -> None:
    """`./dev releases` writes the module for the default release of schemas/compatibility.yaml."""
    release = load_releases().core.default.release
    text = (BLUEPRINT / "go.mod.jinja").read_text(encoding="utf-8")

    found = re.findall(r"^\tsigs\.k8s\.io/cluster-api(\S*) (\S+)$", text, re.MULTILINE)

    assert dict(found) == {"": release, "/api": release, "/test": release}
