"""The output of ``capsmith lab demo``: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from capsmith.clusters.lab.demo import (
    Show,
    check_template,
    check_variables,
    create,
    ensure_run,
    format_hints,
    watch,
)
from capsmith.clusters.lab.errors import lab_not_running
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.objects import Cluster, ObjectRow, describe_changes, format_rows
from capsmith.clusters.lab.pods import build_no_node_error
from capsmith.clusters.lab.provider import read_provider
from capsmith.clusters.lab.state import LabState, read_lab
from capsmith.clusters.lab.up import UpRequest, start_lab
from capsmith.commands.conformance_release import read_objects
from capsmith.console import Console

if TYPE_CHECKING:
    from rich.table import Table

_CLUSTER = "demo"


def show_demo(
    folder: Path,
    lab: LabFolder,
    core: str,
    *,
    as_pods: bool = False,
    open_page: Callable[[LabFolder], None] | None = None,
    apply: Sequence[Path] = (),
) -> int:
    """Start the lab and the provider if necessary, and show a cluster until its Machines run.

    Returns the exit code.  If ``as_pods`` is true, a new lab has a node, and the provider runs as
    Pods. ``open_page`` is called as soon as the lab is running.  ``apply`` are files with objects
    to create before the cluster.
    """
    provider = read_provider(folder)
    # Files that cannot be read are reported before anything starts.
    more = [each for path in apply for each in read_objects(path)]
    if not as_pods:
        provider.check_manager()
    # In a lab that runs, the Cluster may already exist.
    if not lab.is_running:
        check_variables(provider)
    console = Console()
    began = time.monotonic()
    state = _provide_lab(lab, core, console, as_pods=as_pods)
    if open_page is not None:
        open_page(lab)
    check_template(provider, state)
    run = ensure_run(provider, lab, console.print_step)
    try:
        create(provider, lab, _CLUSTER, console.print_step, more)
        created = time.monotonic()
        with _screen(console) as show:
            found = watch(lab, _CLUSTER, show)
    except KeyboardInterrupt:
        console.print_step(
            "The lab and the provider keep running; to end them, run "
            f"capsmith lab down --name {lab.name}"
        )
        raise
    console.print_text(_summarize(found, created, began))
    console.print_text("\n".join(format_hints(lab.name, state, run, found)))
    return 0


def _summarize(found: Cluster, created: float, began: float) -> str:
    now = time.monotonic()
    reached = f"has {found.running} Machines Running" if found.machines else "is Provisioned"
    return (
        f"The Cluster {_CLUSTER} {reached}, {now - created:.0f} s after its creation, "
        f"{now - began:.0f} s in all."
    )


def _provide_lab(lab: LabFolder, core: str, console: Console, *, as_pods: bool) -> LabState:
    """Return the state of the lab, which is started if it is not running; print how it runs.

    Raises LabError if a running lab has no node `as_pods`.
    """
    if not lab.is_running:
        start_lab(lab, UpRequest(core, node=as_pods, image=as_pods), console.print_step)
    state = read_lab(lab.state)
    if state is None:
        raise lab_not_running(lab.name)
    if as_pods and not state.node:
        raise build_no_node_error(lab.name)
    console.print_step(
        "the provider runs as its Deployment, in Pods of its image"
        if state.node
        else "the provider runs as a process, without a container"
    )
    return state


@contextmanager
def _screen(console: Console) -> Iterator[Show]:
    if not sys.stdout.isatty():
        yield _lines(console)
        return
    from rich.live import Live

    with Live(refresh_per_second=4) as live:
        yield lambda found: live.update(_table(format_rows(found)))


def _lines(console: Console) -> Show:
    """Return a function that prints a line for each row that has changed."""
    shown: list[ObjectRow] = []

    def show(found: Cluster) -> None:
        now = format_rows(found)
        for row in describe_changes(shown, now):
            waiting = f" ({row.waiting})" if row.waiting else ""
            console.print_text(f"{row.kind}/{row.name}: {row.state}{waiting}")
        shown[:] = now

    return show


def _table(found: list[ObjectRow]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("OBJECT", no_wrap=True)
    table.add_column("STATE", no_wrap=True)
    # This column becomes narrower on a narrow terminal.
    table.add_column("WAITS FOR")
    for row in found:
        state = Text(row.state, style="yellow" if row.waiting else "green")
        waiting = Text(row.waiting, no_wrap=True, overflow="ellipsis")
        table.add_row(f"{'  ' * row.depth}{row.kind}/{row.name}", state, waiting)
    return table
