"""The images have what kubeadm requires."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.vm.components import (
    FLANNEL_IMAGE,
    PROBE_IMAGE,
    RELEASES,
    Release,
    build_components,
    list_images,
)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: str(release.version))
def test_kubeadm_pulls_nothing(release: Release) -> None:
    components = build_components()
    command = [str(components.kubernetes_of(release) / "kubeadm"), "config", "images", "list"]
    command.append(f"--kubernetes-version={release.version}")
    asked = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    images = {each.reference for each in list_images(components, Path("/"), release)}
    assert images >= {*asked, FLANNEL_IMAGE, PROBE_IMAGE}
    assert f"registry.k8s.io/kube-apiserver:{release.version}" in asked
