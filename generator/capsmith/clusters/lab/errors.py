"""Errors from labs. Each contains a finding for the user."""

from __future__ import annotations

import errno
from pathlib import Path

from capsmith.errors import CapsmithError, DiskError, Refused, UnreadableInput


class LabError(CapsmithError):
    """Raised if the lab cannot do what the user requested."""


def keep_tail(text: str, lines: int = 30) -> str:
    """Return the last ``lines`` lines of ``text``, such as a command's output."""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def lab_not_running(name: str) -> LabError:
    """Create the error for a lab that does not exist or has stopped unexpectedly."""
    message = f"the lab {name} is not running"
    return LabError("lab-not-running", message, hint=f"Run capsmith lab up --name {name}.")


def lab_already_running(name: str) -> Refused:
    """Create the error for starting a lab under a name that is already in use."""
    return Refused(
        "lab-exists",
        f"a lab named {name} is already running",
        hint=f"Use it, end it with capsmith lab down --name {name}, or choose another --name.",
    )


def lab_not_chosen(names: list[str]) -> LabError:
    """Create the error for a command that names no lab when there is not exactly one.

    ``names`` are the names of the existing labs.
    """
    if not names:
        hint = "Run capsmith lab up in the folder of a provider."
        return LabError("lab-not-running", "no lab is running", hint=hint)
    listed = ", ".join(names)
    return LabError("lab-name", f"several labs exist: {listed}", hint="Choose one with --name.")


def provider_missing(folder: Path) -> UnreadableInput:
    """Create the error for a folder that is not a provider repository."""
    return UnreadableInput(
        "lab-no-provider",
        "no provider.yaml found",
        file=str(folder),
        hint="Specify the folder of a provider, or create one with capsmith new.",
    )


def provider_not_generated(folder: Path, missing: str) -> UnreadableInput:
    """Create the error for a folder that has a provider.yaml but no generated provider.

    ``missing`` names the missing part.
    """
    return UnreadableInput(
        "lab-not-generated",
        f"{missing} is missing: the provider was not generated here",
        file=str(folder),
        hint=f"Run capsmith generate {folder}/provider.yaml -o NEW_FOLDER, then use NEW_FOLDER.",
    )


def disk_full(folder: Path) -> DiskError:
    """Create the error for a full file system that contains ``folder``."""
    hint = "Make room, or set XDG_STATE_HOME and CAPSMITH_TOOLS_CACHE to folders on another disk."
    return DiskError("lab-disk-full", "the disk is full", file=str(folder), hint=hint)


def convert_os_error(error: OSError, folder: Path) -> CapsmithError:
    """Convert an OSError about a lab's files into an error with a finding."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(folder)
    message = f"a file of the lab cannot be used: {error.strerror or error}"
    file = str(error.filename or folder)
    return DiskError("lab-files", message, file=file, hint="Check its owner and permissions.")


def convert_api_error(error: Exception, what: str) -> LabError:
    """Convert a refused or failed API request into an error with a finding.

    ``what`` describes the request.
    """
    hint = "Correct what it reports; capsmith lab status shows whether everything is running."
    if isinstance(error, LookupError):
        hint = "Install what serves the kind, or choose another release with --core."
    return LabError("lab-api", f"{what}: {error}", hint=hint)


def explain_process_error(error: CapsmithError, folder: Path) -> CapsmithError:
    """Return a clearer error if the failed process's log shows the cause, else ``error``."""
    text = str(error)
    if "no space left on device" in text:
        return disk_full(folder)
    if "address already in use" in text:
        hint = "Run the command again: it chooses other ports."
        message = f"another process took a port that was free: {text}"
        return LabError("lab-port-taken", message, hint=hint)
    return error
