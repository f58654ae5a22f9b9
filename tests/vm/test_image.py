"""What the image has of what kubeadm asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

from capsmith.clusters.processes.tools import kubernetes_version
from tests.vm.components import FLANNEL_IMAGE, PROBE_IMAGE, build_components, list_images


def test_kubeadm_pulls_nothing() -> None:
    components = build_components()
    command = [str(components.kubernetes / "kubeadm"), "config", "images", "list"]
    command.append(f"--kubernetes-version={kubernetes_version()}")
    asked = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    images = [each.reference for each in list_images(components, Path("/"))]
    assert sorted(images) == sorted([*asked, FLANNEL_IMAGE, PROBE_IMAGE])
    assert f"registry.k8s.io/kube-apiserver:{kubernetes_version()}" in asked
