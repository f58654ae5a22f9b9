"""The page of 5,000 Machines in Chromium: ``python -m benchmarks.page``.

``capsmith lab page`` is a process of its own; the API server, simulated, is this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.timing import table
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig
from tests.browser.api_server import SimulatedApi, serve_api
from tests.browser.objects import JSON, condition, copy, make_cluster, make_machine
from tests.browser.window import Window, find_programs, open_window

_MACHINES = 5_000
_TYPES = ("Available", "Ready", "InfrastructureReady", "BootstrapConfigReady", "NodeReady")
_MANAGERS = ("manager", "acme", "kubeadm")
_OBSERVE = """
    window.seen = {};
    window.tasks = [];
    const texts = { first: " Machines", all: "5000 Machines", change: "no quota" };
    const note = () => {
        const shown = document.body ? document.body.innerText : "";
        for (const [name, text] of Object.entries(texts))
            if (!(name in window.seen) && shown.includes(text))
                window.seen[name] = performance.now();
    };
    const tasks = new PerformanceObserver((list) =>
        window.tasks.push(...list.getEntries().map((each) => each.duration)));
    tasks.observe({ type: "longtask", buffered: true });
    const changes = new MutationObserver(note);
    changes.observe(document, { childList: true, subtree: true, characterData: true });
"""
"""Script that notes when parts of the page are shown, and tasks of more than 50 ms."""


def make_objects(machines: int) -> Iterator[JSON]:
    """Yield objects as large as a real API server's, with conditions and managed fields."""
    yield from make_cluster()
    fields: JSON = {f"f:field{number}": {".": {}, "f:value": {}} for number in range(40)}
    managed = [{"manager": each, "operation": "Update", "fieldsV1": fields} for each in _MANAGERS]
    conditions = [condition(each, "True", reason="Available") for each in _TYPES]
    for number in range(machines):
        for obj in make_machine(f"m-{number}"):
            obj["metadata"]["managedFields"] = managed
            obj["status"]["conditions"] = conditions
            yield obj


@contextmanager
def serve(kubeconfig: Path, environment: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Return a context manager with the address of the file that opens a page, and a process id."""
    command = [sys.executable, "-m", "capsmith", "lab", "page", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            lines = (line.split() for line in process.stdout)
            yield next(words[1] for words in lines if words[0] == "Open"), process.pid
        finally:
            process.terminate()


def read_processor(process: int) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(window: Window, api: SimulatedApi, opener: str, process: int) -> list[str]:
    """Open the page and change one Machine; return the figures of both."""
    before = read_processor(process)
    window.open("about:blank")
    observe = {"source": _OBSERVE}
    window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", observe)
    window.driver.get(opener)
    window.wait(lambda: "all" in window.run("return window.seen || {}"))
    spent = read_processor(process) - before
    shown, tasks = window.run("return window.seen"), window.run("return window.tasks.splice(0)")
    machine, _ = make_machine("m-1", phase="Provisioning", message="no quota")
    api.put(copy(machine))
    window.wait(lambda: "change" in window.run("return window.seen"))
    late = window.run("return window.tasks.splice(0)")
    api.put(next(each for each in make_objects(2) if each["metadata"]["name"] == "m-1"))
    window.wait_text("5000 Machines")
    figures = shown["first"] / 1000, shown["all"] / 1000, spent
    longest = max(tasks, default=0), max(late, default=0)
    return [*(f"{each:.2f} s" for each in figures), *(f"{each:.0f} ms" for each in longest)]


def main() -> None:
    programs = find_programs()
    if programs is None:
        raise SystemExit("needs Chromium and its driver")
    with tempfile.TemporaryDirectory() as name, serve_api(Path(name)) as (api, client):
        for obj in make_objects(_MACHINES):
            api.put(obj)
        kubeconfig = Path(name) / "kubeconfig"
        text = render_token_kubeconfig(client.server, client.credentials.ca, "token")
        kubeconfig.write_text(text, encoding="utf-8")
        with open_window(*programs, Path(name) / "profile") as window:
            rows = [["page", "first content", "all", "processor", "longest task", "of a change"]]
            with serve(kubeconfig, dict(os.environ)) as (opener, process):
                for title in ("just started", "another tab", "another tab"):
                    rows.append([title, *measure(window, api, opener, process)])
    table(rows)


if __name__ == "__main__":
    main()
