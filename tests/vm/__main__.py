"""Run the tests with virtual machines: ``python -m tests.vm [ARGUMENT OF PYTEST]...``.

What needs a network is made first.  Then namespaces keep libvirt's networks and daemons from the
rest of the computer, and end all processes with the tests.
"""

from __future__ import annotations

import os
import sys

from tests.e2e.tools.required import required_toolbox
from tests.vm.components import MODULES
from tests.vm.controllers import cached_controllers
from tests.vm.image.build import cached_image
from tests.vm.suite import download_modules

_NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_INSIDE = 'ip link set lo up && "$@"; exit $?'
"""The shell stays: as the first process it has to reap QEMU, whose parent ends at once."""


def main() -> None:
    """Build the components and the image, and run pytest in the namespaces."""
    required_toolbox("tests with virtual machines", MODULES)
    print(f"the image is {cached_image().folder}", flush=True)
    print("compiling Cluster API's specs", flush=True)
    download_modules()
    print(f"controllers are in {cached_controllers()[0].parent}", flush=True)
    os.environ["CAPSMITH_VM"] = "1"
    pytest = [sys.executable, "-m", "pytest", "-s", "tests/vm", *sys.argv[1:]]
    command = [*_NAMESPACES, "sh", "-c", _INSIDE, "sh", *pytest]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
