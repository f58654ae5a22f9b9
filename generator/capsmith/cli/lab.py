"""``capsmith lab``: run a provider's folder in a management cluster on this computer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from capsmith.cli.options import FOLDER, core_option, format_option, handle_exit

if TYPE_CHECKING:
    from pathlib import Path

    from capsmith.clusters.lab.folder import LabFolder


_ARGUMENTS = "capsmith.lab.arguments"


class _LinuxGroup(click.Group):
    """A command group that checks for Linux and the packages of an extra before each command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the group's own options, and keep the arguments of the command."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, or exit with code 2 if labs are not supported here."""
        from capsmith.clusters.lab.requirements import require_lab_command
        from capsmith.console import Console
        from capsmith.errors import CapsmithError

        try:
            require_lab_command(ctx.meta[_ARGUMENTS])
        except CapsmithError as error:
            Console().print_failure(error)
            ctx.exit(error.exit_code)
        return super().invoke(ctx)


_GATES = re.compile(r"[A-Za-z0-9]+=(true|false)(,[A-Za-z0-9]+=(true|false))*")
_name_option = click.option(
    "--name", metavar="NAME", help="Name of the lab [default: the provider's name]."
)
_pod_option = click.option(
    "--pod", is_flag=True, help="Run the provider as Pods; needs a lab with a node."
)
_page_option = click.option(
    "--page", is_flag=True, help="Serve the page of the lab in the background until the lab ends."
)
_core_option = core_option("The release of core.")


@click.group(cls=_LinuxGroup)
def lab() -> None:
    """Run a provider in a management cluster on this computer, without containers.

    etcd, kube-apiserver, Cluster API core, the kubeadm providers and clusterctl run as processes.
    Kubernetes servers are looked for on this computer (KUBEBUILDER_ASSETS, the folder of
    setup-envtest, PATH); missing ones are built once with Go, which takes some minutes. If Go is
    missing, run pip install 'capsmith[go]'. Workload clusters have a real API server; their
    machines are simulated.
    """


_gates_option = click.option(
    "--feature-gates",
    metavar="NAME=BOOL,...",
    default="",
    help="Feature gates of core and the kubeadm providers.",
)


@lab.command()
@_core_option
@_name_option
@click.option(
    "--kubeconfig",
    type=FOLDER,
    metavar="FILE",
    help="Use the management cluster in this kubeconfig.",
)
@click.option("--kind", is_flag=True, help="Create a cluster with kind and docker, and use it.")
@_gates_option
@click.option("--node", is_flag=True, help="Run core and providers as Pods; needs root.")
@_page_option
@handle_exit
def up(
    core: str,
    name: str | None,
    kubeconfig: Path | None,
    kind: bool,
    feature_gates: str,
    node: bool,
    page: bool,
) -> int:
    """Start a lab in the background.

    With --kubeconfig or --kind, machines are not simulated.  The cluster in --kubeconfig must
    already run Cluster API; --kind needs network access to install it.

    With --node, the lab has a node with containerd and a kubelet, in namespaces of its own.  Core,
    the kubeadm providers, cert-manager and your provider then run as Pods.
    """
    from capsmith.clusters.lab.up import UpRequest
    from capsmith.clusters.lab.up import start_lab as start
    from capsmith.console import Console

    if kubeconfig is not None and kind:
        raise click.UsageError("--kubeconfig and --kind exclude each other.")
    if feature_gates and (kind or kubeconfig is not None):
        raise click.UsageError("--feature-gates is for a lab with a core of its own.")
    if node and (kind or feature_gates or kubeconfig is not None):
        raise click.UsageError("--node excludes --kubeconfig, --kind and --feature-gates.")
    _check_gates(feature_gates)
    _require_page(page)
    folder = _new(name, None)
    console = Console()
    request = UpRequest(core, kubeconfig, kind, feature_gates, node)
    state = start(folder, request, console.print_step)
    console.print_text(f"The lab {folder.name} is running. Next: capsmith lab run [DIR].")
    console.print_text(f"export KUBECONFIG={state.kubeconfig}")
    if page:
        _open_page(folder)
    return 0


@lab.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@_name_option
@_pod_option
@_page_option
@handle_exit
def run(folder: Path, name: str | None, pod: bool, page: bool) -> int:
    """Run the provider in DIR (default: .) until Ctrl-C, and restart it when its files change.

    The provider is released into the lab's clusterctl repository and installed with clusterctl
    init. Its manager runs under its own ServiceAccount.  It restarts when a file below src/
    changes; a change to config/ or templates/ installs a new release.

    In a lab with a node (--node), the image is built from the Dockerfile, and the provider runs as
    its Deployment. A change installs a new release. The Pods keep running after Ctrl-C.
    """
    from capsmith.clusters.lab.provider import read_provider
    from capsmith.clusters.lab.run import run as run_provider
    from capsmith.console import Console

    provider = read_provider(folder)
    console, lab = Console(), _existing(name, folder)
    if page:
        _open_page(lab)
    run_provider(provider, lab, console.print_step, console.print_failure, as_pods=pod)
    return 0


@lab.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@_core_option
@_name_option
@_pod_option
@_page_option
@click.option(
    "--apply",
    type=FOLDER,
    metavar="FILE",
    multiple=True,
    help="Objects to apply before the cluster, such as the hosts of an inventory.",
)
@handle_exit
def demo(
    folder: Path, core: str, name: str | None, pod: bool, page: bool, apply: tuple[Path, ...]
) -> int:
    """Create a cluster with the provider in DIR (default: .) and show it until its Machines run.

    Starts the lab and the provider if they are not running, and leaves them running.
    """
    from capsmith.cli.lab_demo import show_demo

    _require_page(page)
    opened = _open_page if page else None
    return show_demo(folder, _new(name, folder), core, as_pods=pod, open_page=opened, apply=apply)


@lab.command(name="exec")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--dir",
    "folder",
    metavar="DIR",
    type=FOLDER,
    default=".",
    help="Folder of the provider [default: .].",
)
@_core_option
@_name_option
@_gates_option
@handle_exit
def execute(
    command: tuple[str, ...], folder: Path, core: str, name: str | None, feature_gates: str
) -> int:
    """Run COMMAND while a provider runs in a lab: capsmith lab exec -- kubectl get providers -A

    A lab that is already running is used, and keeps running. Otherwise, a lab is started, and shut
    down after COMMAND. COMMAND runs with the variables KUBECONFIG and CLUSTERCTL_CONFIG, and finds
    the lab's kubectl and clusterctl on PATH; clusterctl reads the lab's configuration. The exit
    code is that of COMMAND.
    """
    from capsmith.clusters.lab.exec import execute as run_command
    from capsmith.clusters.lab.provider import read_provider
    from capsmith.clusters.lab.up import UpRequest
    from capsmith.console import Console

    _check_gates(feature_gates)
    request = UpRequest(core, gates=feature_gates)
    provider, progress = read_provider(folder), Console().print_step
    return run_command(provider, _new(name, folder), request, command, progress)


@lab.command()
@_name_option
@format_option()
@handle_exit
def status(name: str | None, format_: str) -> int:
    """Show what is running.  Exit codes: 0 everything is running, 1 something is not."""
    from capsmith.clusters.lab.status import format_lines, format_table, read_status, to_data
    from capsmith.console import Console

    console = Console(format_)
    found = read_status(_existing(name, None))
    if format_ == "json":
        console.print_data(to_data(found))
    else:
        console.print_text("\n".join(format_lines(found)))
        console.print_table(format_table(found))
    return 0 if found.is_healthy else 1


@lab.command()
@click.argument("component", required=False)
@click.option("-f", "--follow", is_flag=True, help="Keep showing new lines until Ctrl-C.")
@click.option(
    "--tail",
    type=click.IntRange(-1),
    metavar="LINES",
    default=50,
    show_default=True,
    help="Last lines to show of each log; -1 for all.",
)
@_name_option
@handle_exit
def logs(component: str | None, follow: bool, tail: int, name: str | None) -> int:
    """Show the end of COMPONENT's log: etcd, apiserver, core, manager … (default: all)."""
    from capsmith.clusters.lab.status import follow as new_lines
    from capsmith.clusters.lab.status import read_last_lines, select_logs
    from capsmith.console import Console

    console, folder = Console(), _existing(name, None)
    files = select_logs(folder, component)
    for title, path in files.items():
        if len(files) > 1:
            console.print_text(f"==> {title} <==")
        for line in read_last_lines(path, tail):
            console.print_text(line)
    if follow:
        for title, line in new_lines(folder, files):
            console.print_text(f"{title}: {line}" if len(files) > 1 else line)
    return 0


@lab.command()
@_name_option
@handle_exit
def kubeconfig(name: str | None) -> int:
    """Print the path of the lab's kubeconfig: export KUBECONFIG=$(capsmith lab kubeconfig)."""
    from capsmith.clusters.lab.errors import lab_not_running
    from capsmith.clusters.lab.state import read_lab
    from capsmith.console import Console

    folder = _existing(name, None)
    state = read_lab(folder.state)
    if state is None or not folder.is_running:
        raise lab_not_running(folder.name)
    Console().print_text(state.kubeconfig)
    return 0


@lab.command()
@_name_option
@click.option(
    "--kubeconfig",
    type=FOLDER,
    metavar="FILE",
    help="Show the management cluster in this kubeconfig instead of a lab.",
)
@click.option("--context", metavar="NAME", default="", help="Context of --kubeconfig.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to use [default: a free one]."
)
@handle_exit
def page(name: str | None, kubeconfig: Path | None, context: str, port: int) -> int:
    """Serve a page that shows the lab live in a browser, until Ctrl-C.

    The page is served on the loopback interface, and opens only with the key in a private file. It
    has buttons in a lab with the simulated cloud, and changes nothing elsewhere.
    """
    import os

    from capsmith.clusters.lab.page.start import serve_cluster, serve_lab
    from capsmith.console import Console

    if kubeconfig is None and context:
        raise click.UsageError("--context is for --kubeconfig.")
    if kubeconfig is not None and name is not None:
        raise click.UsageError("--name and --kubeconfig exclude each other.")
    console = Console()

    def ready(address: str, opener: Path) -> None:
        console.print_text(f"The page is served at {address}")
        console.print_text(f"Open {opener.as_uri()} in a browser; it contains the page's key.")

    if kubeconfig is not None:
        serve_cluster(kubeconfig, context, os.environ, port, ready)
    else:
        serve_lab(_existing(name, None), port, ready)
    return 0


@lab.command()
@_name_option
@click.option("--all", "all_", is_flag=True, help="End all labs.")
@click.option(
    "--force", is_flag=True, help="End the lab even if clusters exist that are not simulated."
)
@handle_exit
def down(name: str | None, all_: bool, force: bool) -> int:
    """Shut down a lab and remove its files, even after a crash. Built tools are kept."""
    from capsmith.clusters.lab.down import check_no_clusters
    from capsmith.clusters.lab.down import end_lab as end
    from capsmith.clusters.lab.folder import list_labs, resolve_lab
    from capsmith.console import Console

    labs = _labs()
    folders = (
        [resolve_lab(labs, each) for each in list_labs(labs)] if all_ else [_existing(name, None)]
    )
    console = Console()
    for folder in folders:
        if not force:
            check_no_clusters(folder)
        given = folder.kubeconfig.exists() and not folder.kind.exists()
        end(folder)
        console.print_text(
            f"The lab {folder.name} has ended; nothing of it is left on this machine."
        )
        if given:
            console.print_text("Everything installed in the cluster of --kubeconfig stays there.")
    return 0


def _require_page(page: bool) -> None:
    """Raise LabError before a lab is started whose page could not be served."""
    if page:
        from capsmith.clusters.lab.page.start import require_page

        require_page()


def _open_page(lab: LabFolder) -> None:
    """Serve the page of a running lab in the background, and print how to open it."""
    from capsmith.clusters.lab.page.background import start_page
    from capsmith.console import Console

    opener = start_page(lab)
    Console().print_text(f"Open {opener.as_uri()} in a browser; it contains the page's key.")


def _check_gates(gates: str) -> None:
    if gates and _GATES.fullmatch(gates) is None:
        raise click.UsageError("--feature-gates has the form NAME=true,OTHER=false.")


def _labs() -> Path:
    import os

    from capsmith.clusters.lab.folder import find_labs_folder

    return find_labs_folder(os.environ)


def _provider_name(folder: Path | None) -> str | None:
    from pathlib import Path

    from capsmith.clusters.lab.provider import read_provider_name

    return read_provider_name((folder or Path()).resolve())


def _new(name: str | None, folder: Path | None) -> LabFolder:
    """Return the folder for a named lab, or for the provider in a folder; it need not exist."""
    from pathlib import Path

    from capsmith.clusters.lab.errors import provider_missing
    from capsmith.clusters.lab.folder import resolve_lab

    chosen = name if name is not None else _provider_name(folder)
    if chosen is None:
        raise provider_missing((folder or Path()).resolve())
    return resolve_lab(_labs(), chosen)


def _existing(name: str | None, folder: Path | None) -> LabFolder:
    """Return the named lab, the lab of the provider in a folder, or the only lab."""
    from capsmith.clusters.lab.folder import choose_lab

    provider = None if name is not None else _provider_name(folder)
    return choose_lab(_labs(), name, provider)
