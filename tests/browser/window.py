"""A browser window that a test drives."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

SECONDS = 30.0
_AXE = Path(__file__).with_name("axe")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_DRIVER = "chromedriver"
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
    # No name is resolved, so only the loopback interface can be reached.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


_WATCH_FOCUS = """
    document.activeElement.blur();
    window.focused = new Set();
    const all = "a[href], button, input, select, textarea, summary, [tabindex='0']";
    window.controls = [...document.querySelectorAll(all)].filter(
        (each) => !each.disabled && each.checkVisibility());
    document.addEventListener("focusin", (event) => window.focused.add(event.target));
"""
"""Script that notes the visible controls of a page, and then those that get the focus."""


class Window:
    """The actions of a user in a browser, mostly with the keyboard."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Open an address in a tab that has no storage of a former page."""
        self.driver.switch_to.new_window("tab")
        for handle in self.driver.window_handles[:-1]:
            self.driver.switch_to.window(handle)
            self.driver.close()
        self.driver.switch_to.window(self.driver.window_handles[0])
        self.read_messages()  # which forgets those of former pages
        self.driver.get(address)

    def wait(self, is_there: Callable[[], Any]) -> Any:
        """Wait until a function returns a true value, and return it."""
        return WebDriverWait(self.driver, SECONDS, 0.05).until(lambda _: is_there())

    def wait_text(self, text: str, selector: str = "body") -> None:
        """Wait until an element shows a text."""
        script = "return [...document.querySelectorAll(arguments[0])].some("
        script += "each => each.innerText.includes(arguments[1]))"
        self.wait(lambda: self.run(script, selector, text))

    def find(self, selector: str, text: str = "") -> WebElement:
        """Wait for the element with a selector that has a text, and return it."""
        script = "return [...document.querySelectorAll(arguments[0])].find("
        script += "each => each.textContent.includes(arguments[1]))"
        found: WebElement = self.wait(lambda: self.run(script, selector, text))
        return found

    def press(self, element: WebElement, *keys: str) -> None:
        """Focus an element that the Tab key can reach, and press keys there."""
        assert self.run("arguments[0].focus(); return document.activeElement", element) == element
        assert self.run("return arguments[0].tabIndex", element) >= 0
        element.send_keys(*keys)

    def find_unreachable(self) -> list[str]:
        """Press Tab through the whole page, and return the visible controls that it leaves out."""
        self.run(_WATCH_FOCUS)
        for _ in range(self.run("return window.controls.length") + 2):
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
        missed = "window.controls.filter(each => !window.focused.has(each))"
        found: list[str] = self.run(f"return {missed}.map(each => each.outerHTML)")
        return found

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script, and return its result."""
        return self.driver.execute_script(script, *arguments)

    def count(self, selector: str) -> int:
        """Return the number of elements that a selector matches."""
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def find_violations(self, scheme: str) -> list[str]:
        """Return the accessibility violations that axe-core finds.

        ``scheme`` is ``light`` or ``dark``.
        """
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.run(_read_axe())
        script = "const done = arguments[0]; axe.run().then(found => done(found.violations.flatMap("
        script += "each => each.nodes.map(node => `${each.id}: ${node.html}`))))"
        found: list[str] = self.driver.execute_async_script(script)
        return found

    def read_messages(self) -> list[str]:
        """Return the browser's console messages since the page was opened."""
        driver: Any = self.driver  # the method has no types
        return [str(each["message"]) for each in driver.get_log("browser")]


ENTER, SPACE = Keys.ENTER, Keys.SPACE


@contextmanager
def open_window(browser: str, driver: str, profile: Path) -> Iterator[Window]:
    """Return a context manager that provides a browser with a profile in an empty folder."""
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = Chrome(options, ChromeService(driver))
    try:
        yield Window(opened)
    finally:
        opened.quit()


def find_programs() -> tuple[str, str] | None:
    """Return the paths to a browser and its driver; None if one of them is not installed."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which(_DRIVER)
    return (browser, driver) if browser and driver else None


@cache
def _read_axe() -> str:
    record = yaml.safe_load((_AXE / "vendor.yaml").read_text(encoding="utf-8"))
    data = (_AXE / "axe.min.js").read_bytes()
    assert hashlib.sha256(data).hexdigest() == record["sha256"]
    return data.decode()
