"""What a node consists of, without starting anything."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from capsmith.clusters.node.plan import (
    ADDRESS,
    KUBELET_ROOT,
    SERVICE,
    SOCKET,
    SYSCTLS,
    NodePaths,
    build_api_server_flags,
    list_folders,
    name_cgroup,
    plan_mounts,
    render_containerd,
    render_kubelet,
    render_network,
)
from capsmith.clusters.processes.servers import override_flags

LAB = Path("/root/lab")
PATHS = NodePaths(LAB / "node")


def targets(lab: Path, sysctls: list[str]) -> list[str]:
    return [each[-1] for each in plan_mounts(NodePaths(lab / "node"), lab, sysctls)]


def test_mounts_hide_what_kubelet_and_containerd_write() -> None:
    found = targets(LAB, ["vm/panic_on_oom"])
    assert found == [
        "/var/log",
        "/root/lab/node/var-lib",
        "/var/lib",
        KUBELET_ROOT,
        KUBELET_ROOT,
        "/root/lab/node/run",
        "/run",
        "/proc/sys/vm/panic_on_oom",
        "/",
    ]


@pytest.mark.parametrize(
    ("hidden", "shown"), [("/var/lib", "var-lib"), ("/run", "run"), ("/var/log", "var-log")]
)
def test_the_folder_of_a_lab_stays_visible_below_a_hidden_folder(hidden: str, shown: str) -> None:
    lab = Path(hidden, "ci/lab")
    commands = plan_mounts(NodePaths(lab / "node"), lab, [])
    place = f"{lab}/node/{shown}/ci/lab"
    hide = commands.index(["mount", "--rbind", f"{lab}/node/{shown}", hidden])
    assert commands[hide - 2 : hide] == [
        ["mkdir", "-p", place],
        ["mount", "--bind", str(lab), place],
    ]


@pytest.mark.parametrize("lab", ["/root/lab", "/run/user/0/lab", "/var/log/lab", "/var/lib/lab"])
def test_the_sockets_of_the_host_are_hidden_wherever_the_lab_is(lab: str) -> None:
    commands = plan_mounts(NodePaths(Path(lab, "node")), Path(lab), [])
    assert ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{lab}/node/run"] in commands
    assert ["mount", "--rbind", f"{lab}/node/run", "/run"] in commands


def test_mounted_folders_exist_before_they_are_mounted() -> None:
    (overlay,) = (each for each in plan_mounts(PATHS, LAB, []) if "overlay" in each)
    folders = {part.partition("=")[2] for part in overlay[-2].split(",")} - {"/var/lib"}
    assert {Path(each) for each in (*folders, overlay[-1])} <= set(list_folders(PATHS))


def test_values_of_hidden_settings_are_those_of_the_kubelet() -> None:
    assert SYSCTLS["vm/overcommit_memory"] == "1"
    assert all(not each.startswith("net/") for each in SYSCTLS)


@pytest.mark.parametrize("folder", ["/root/lab/node", '/root/a "b"\\c/node'])
def test_containerd_config_is_toml_with_the_paths(folder: str) -> None:
    paths = NodePaths(Path(folder))
    config = tomllib.loads(render_containerd(paths, "/usr/sbin/runc", Path("/tools")))
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert config["root"] == f"{folder}/containerd"
    assert config["plugins"]["io.containerd.internal.v1.opt"] == {"path": f"{folder}/opt"}
    assert runtime["cni"] == {"bin_dirs": ["/tools"], "conf_dir": f"{folder}/cni"}
    options = runtime["containerd"]["runtimes"]["runc"]["options"]
    assert options == {"BinaryName": "/usr/sbin/runc", "SystemdCgroup": False}


def test_kubelet_stays_in_the_cgroup_and_folder_of_the_lab() -> None:
    text = render_kubelet(PATHS, LAB, Path("/ca"), Path("/cert"), Path("/key"), 20_000)
    config = yaml.safe_load(text)
    assert config["cgroupRoot"] == f"/{name_cgroup(LAB)}"
    assert config["containerRuntimeEndpoint"] == f"unix://{SOCKET}"
    assert config["maxOpenFiles"] == 20_000
    assert config["volumePluginDir"].startswith(str(PATHS.root))


def test_labs_of_one_name_in_different_folders_have_different_cgroups(tmp_path: Path) -> None:
    folders = [tmp_path / each / "lab" for each in ("a", "b")]
    for each in folders:
        each.mkdir(parents=True)
    assert len({name_cgroup(each) for each in folders}) == 2
    assert all(name_cgroup(each).startswith("capsmith-lab-lab-") for each in folders)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert name_cgroup(tmp_path / "link" / "lab") == name_cgroup(folders[0])


def test_addresses_of_pods_are_kept_in_the_folder_of_the_lab() -> None:
    (bridge,) = json.loads(render_network(PATHS))["plugins"]
    assert bridge["ipam"]["dataDir"].startswith(str(PATHS.root))


def test_flags_of_a_node_replace_those_of_a_lab_without_one() -> None:
    flags = ["--bind-address=127.0.0.1", "--authorization-mode=RBAC", "--profiling=false"]
    found = override_flags(flags, build_api_server_flags(Path("/ca"), Path("/c"), Path("/k")))
    assert "--bind-address=127.0.0.1" not in found
    assert "--authorization-mode=RBAC" not in found
    assert {"--profiling=false", f"--advertise-address={ADDRESS}"} <= set(found)
    assert SERVICE.rpartition(".")[0] in "".join(found)
