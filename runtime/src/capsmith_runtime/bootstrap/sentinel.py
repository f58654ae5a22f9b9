"""The sentinel file that shows that a machine's bootstrap has succeeded (BC-13).

Infrastructures check the file to distinguish a failed bootstrap from a slow one (IM-23), so it must
not exist unless everything before it succeeded.
"""

from __future__ import annotations

import posixpath
import shlex
from typing import Final

LINUX_SENTINEL: Final = "/run/cluster-api/bootstrap-success.complete"
"""Path of the sentinel file on Linux."""
WINDOWS_SENTINEL: Final = r"C:\run\cluster-api\bootstrap-success.complete"
"""Path of the sentinel file on Windows."""
TEXT: Final = "success"


def shell_script(*commands: str, sentinel: str = LINUX_SENTINEL) -> str:
    """Return a POSIX shell script that runs the commands and then writes the sentinel file.

    If a command fails, the script stops without writing the file. ``commands`` are shell code and
    are not quoted.
    """
    folder, file = shlex.quote(posixpath.dirname(sentinel)), shlex.quote(sentinel)
    # Written under another name first, so that the file never exists without its text.
    last = (f"mkdir -p {folder}", f"echo {TEXT} > {file}.tmp", f"mv {file}.tmp {file}")
    return "\n".join(("set -e", *commands, *last)) + "\n"


def run_command(*commands: str, sentinel: str = LINUX_SENTINEL) -> list[str]:
    """Return the script as a ``runcmd`` entry for cloud-init, or as a systemd unit's arguments.

    A script must be a single entry, because cloud-init runs an entry even if an earlier one failed.
    """
    return ["/bin/sh", "-c", shell_script(*commands, sentinel=sentinel)]


def powershell_script(*commands: str, sentinel: str = WINDOWS_SENTINEL) -> str:
    """Return a PowerShell script that runs the commands and then writes the sentinel file.

    If a command fails, the script stops without writing the file. ``commands`` are PowerShell code;
    none of them may exit the script itself.
    """
    folder, file = _quoted(sentinel.rpartition("\\")[0]), _quoted(sentinel)
    lines = ["$ErrorActionPreference = 'Stop'"]
    for command in commands:
        # PowerShell raises no error when a program fails: only the exit code shows it.
        lines += ["$global:LASTEXITCODE = 0", command]
        lines.append("if ($global:LASTEXITCODE -ne 0) { exit $global:LASTEXITCODE }")
    lines.append(f"New-Item -ItemType Directory -Force -Path {folder} | Out-Null")
    lines.append(f"Set-Content -Path {file} -Value {_quoted(TEXT)}")
    return "\r\n".join(lines) + "\r\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
