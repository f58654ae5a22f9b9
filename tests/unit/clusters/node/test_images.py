"""Archives of images that consist of one executable."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

from capsmith.clusters.node.components import release_manifest
from capsmith.clusters.node.images import Image, parse_libraries, write_archive

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f10)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f32)
"""


def test_archive_contains_each_image_with_its_layer(tmp_path: Path) -> None:
    binary = tmp_path / "manager"
    binary.write_text("#!/bin/sh\n")
    names = ["example.com/a:v1", "example.com/b:v1"]
    images = [Image(name, binary, "/app/manager", "65532:65532") for name in names]
    write_archive(tmp_path / "images.tar", images, "amd64")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["images.tar", "manager"]
    with tarfile.open(tmp_path / "images.tar") as archive:
        manifest = json.load(archive.extractfile("manifest.json") or binary.open("rb"))
        assert [each["RepoTags"] for each in manifest] == [[name] for name in names]
        for each in manifest:
            config = json.load(archive.extractfile(each["Config"]) or binary.open("rb"))
            layer = (archive.extractfile(each["Layers"][0]) or binary.open("rb")).read()
            digest = hashlib.sha256(layer).hexdigest()
            assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]
            assert config["config"] == {
                "Entrypoint": ["/app/manager"],
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "User": "65532:65532",
            }


def test_further_files_are_beside_the_executable(tmp_path: Path) -> None:
    binary, program = tmp_path / "proxy", tmp_path / "multi"
    binary.write_text("#!/bin/sh\n")
    program.write_text("#!/bin/sh\nexit 0\n")
    files = {"/usr/sbin/iptables": program}
    image = Image("example.com/a:v1", binary, "/usr/local/bin/proxy", "0:0", files)
    write_archive(tmp_path / "images.tar", [image], "amd64")
    with tarfile.open(tmp_path / "images.tar") as archive:
        (name,) = (each for each in archive.getnames() if each.endswith("layer.tar"))
        with tarfile.open(fileobj=archive.extractfile(name)) as layer:
            assert layer.getnames() == [
                "usr",
                "usr/local",
                "usr/local/bin",
                "usr/sbin",
                "usr/sbin/iptables",
                "usr/local/bin/proxy",
            ]
            found = layer.extractfile("usr/sbin/iptables")
            assert found is not None
            assert found.read() == program.read_bytes()


def test_libraries_are_those_with_a_path() -> None:
    libraries = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]
    assert parse_libraries(LDD) == libraries
    assert parse_libraries("\tnot a dynamic executable\n") == []


def test_images_of_components_are_those_of_the_release() -> None:
    source = "image: gcr.io/k8s-staging-cluster-api/kubeadm-bootstrap-controller:main\n"
    source += "imagePullPolicy: Always\n"
    assert release_manifest(source, "v1.14.2") == (
        "image: registry.k8s.io/cluster-api/kubeadm-bootstrap-controller:v1.14.2\n"
        "imagePullPolicy: IfNotPresent\n"
    )
