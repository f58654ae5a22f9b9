"""Images of the controllers that run as Pods in machines: upstream's, and the provider's own."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Final

from capsmith.clusters.node.builder import find_builder
from capsmith.clusters.node.components import list_images
from capsmith.clusters.node.images import write_archive
from capsmith.clusters.node.tools import NodeTools, build_node_tools
from capsmith.clusters.processes.tools import Toolbox
from tests.e2e.base_image import build_base_images
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.releases import NEWEST
from tests.e2e.tools.required import required_toolbox
from tests.vm.components import MODULES
from tests.vm.image.build import cache_folder
from tests.vm.provider import build_libvirt_provider

_COMPILED: Final = ("libvirt-python<13",)
"""pip compiles it, with libvirt's library, as in the Dockerfile of an author."""


def cached_controllers() -> list[Path]:
    """Return archives with the images; make them if an input has changed.

    This needs a network, unlike the tests.
    """
    tools, node_tools = required_toolbox("the images", MODULES), build_node_tools(print)
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        folder = Path(scratch)
        provider = build_libvirt_provider(folder / "libvirt", with_helpers=False)
        target = cache / f"controllers-{_digest(provider, tools, node_tools)}"
        if not target.is_dir():
            made = folder / "made"
            made.mkdir()
            write_archive(made / "upstream.tar", list_images(tools, node_tools, NEWEST), "amd64")
            build_base_images(folder / "base", _COMPILED)
            find_builder().build(provider.repository, _image(provider), made / "provider.tar")
            made.rename(target)
    return sorted(target.iterdir())


def _image(provider: ProviderUnderTest) -> str:
    (deployment,) = (each for each in provider.components if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def _digest(provider: ProviderUnderTest, tools: Toolbox, node_tools: NodeTools) -> str:
    sources = ("Dockerfile", "pyproject.toml", "src", "vendor")
    files = [path for name in sources for path in _list_files(provider.repository / name)]
    parts = [Path(__file__).read_bytes(), *(path.read_bytes() for path in files)]
    folders = [*tools.folders.values(), *map(Path, node_tools.to_data().values())]
    parts += [folder.name.encode() for folder in folders]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _list_files(path: Path) -> list[Path]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [each for each in found if each.is_file() and each.suffix != ".pyc"]
