"""Pictures of the lab's page for the documentation: ``python -m tests.browser.pictures``.

They are taken from a run of the example in a real lab, in three states.  Beside them is a digest of
everything that decides how the page looks; a test compares it, because other releases of Chromium
draw other pixels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser import digest
from tests.browser.window import ENTER, Window, find_programs, open_window

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
DIGEST = PICTURES / "page.sha256"
_PAGE = ROOT / "generator" / "capsmith" / "clusters" / "lab" / "page"
_ASSETS = _PAGE / "assets"
_EXAMPLE = ROOT / "examples" / "acme" / "provider.yaml"
_NAME = "acme"
_SIZE = {"width": 1280, "height": 760, "deviceScaleFactor": 1, "mobile": False}


def compute_digest() -> str:
    """Return a digest of the files that decide what the page shows, and of this script."""
    assets = [path for path in sorted(_ASSETS.rglob("*")) if path.is_file()]
    model = sorted((_PAGE / "model").glob("*.py"))
    return digest.compute_digest([*assets, *model, Path(__file__), _EXAMPLE], ROOT)


@contextmanager
def run_demo(folder: Path) -> Iterator[Path]:
    """Return a context manager with the file that opens the page of a lab with a cluster."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}

    def run(*arguments: str) -> None:
        command = [sys.executable, "-m", "capsmith", *arguments]
        subprocess.run(command, env=environment, check=True, stdout=sys.stderr)

    run("generate", str(_EXAMPLE), "-o", str(folder / "acme"))
    try:
        run("lab", "demo", str(folder / "acme"), "--page")
        yield folder / "state" / "capsmith" / "lab" / _NAME / "background-page.html"
    finally:
        run("lab", "down", "--name", _NAME)


def press_action(window: Window, place: str, title: str) -> None:
    """Open a list of actions, start one, and close the list, whose commands name local paths."""
    summary = window.find(f"{place} summary", "Try")
    window.press(summary, ENTER)
    window.press(window.find(f"{place} .actions button", title), ENTER)
    window.wait_text(f"Done: {title}", "[role=status]")
    window.press(summary, ENTER)


def save(window: Window, name: str) -> None:
    """Save what the window shows, with its top at the top of the page."""
    window.run("window.scrollTo(0, 0); document.activeElement.blur()")
    window.driver.save_screenshot(str(PICTURES / f"{name}.png"))


def take_pictures(window: Window, opener: Path) -> None:
    """Save the page while everything runs, while logins are refused, and after a crash."""
    window.open(opener.as_uri())
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", _SIZE)
    window.press(window.find("button.name", "MachineDeployment/"), ENTER)
    window.wait_text("MachineDeployment/", ".details h2")
    press_action(window, "header", "Refuse logins")
    press_action(window, ".details", "Scale to 3")
    window.wait_text("401 Unauthorized", ".tree")
    row = "[...document.querySelectorAll('.tree tr')].find(row => row.cells[3].innerText.includes("
    script = f"return {row}arguments[0])).querySelector('button.name')"
    waiting = window.wait(
        lambda: window.run(script, "Error: Ready (LoginRefused): 401 Unauthorized")
    )
    window.press(waiting, ENTER)
    window.wait_text("LoginRefused", ".details .axis")
    save(window, "page-waiting")
    press_action(window, "header", "Accept logins again")
    window.wait_text("3 of 3 ready", ".tree")
    window.wait(
        lambda: window.run("return !document.querySelector('.state.waiting, .state.failed')")
    )
    window.press(window.find("button.name", "Machine/"), ENTER)
    window.wait_text("until NodeReady", ".details .axis")
    save(window, "page")
    press_action(window, "header", "Kill the manager")
    window.wait_text("is restarting", ".notice")
    save(window, "page-restarting")


def main() -> None:
    """Take the pictures and record the digest."""
    programs = find_programs()
    if programs is None:
        sys.exit("needs Chromium and its driver")
    with (
        tempfile.TemporaryDirectory(prefix="capsmith-") as name,
        run_demo(Path(name)) as opener,
        open_window(*programs, Path(name) / "profile") as window,
    ):
        take_pictures(window, opener)
    DIGEST.write_text(f"{compute_digest()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
