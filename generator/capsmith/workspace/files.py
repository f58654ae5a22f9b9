"""Files in a repository: paths that cannot leave its folder, atomic writes, and safe moves.

Paths come from a lock, a journal or an overlay that others may have written, because a repository
can be cloned from anywhere.  No path may therefore lead out of the folder, through a symlink, or
into ``.git``, where git would execute a file such as ``hooks/post-checkout``.

A move must not lose changes that another program saves at the same time.  If a file were compared
and another file then renamed over it, an editor's automatic save in between would be lost.
Therefore, the two files are exchanged in one step and compared afterwards, when the other program
can no longer reach the file under its name.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from capsmith.errors import Refused
from capsmith.regular_files import NotRegularError
from capsmith.safetext import RelativePath
from capsmith.tree import digest_stream

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a file that is read.  All files that capsmith writes are far smaller."""
_DESCRIPTORS = "/proc/self/fd"
"""Folder that leads to open folders by their descriptors, on Linux."""
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_AT_ONCE = 8
"""Number of files that are written concurrently."""
_KEPT_ATTRIBUTES = ("user.", "system.", "security.selinux")
"""Prefixes of extended attributes; others belong to the content, such as signatures."""


def resolve_without_symlinks(folder: Path, path: str) -> Path:
    """Return the location of ``path`` in ``folder``, whether or not the file exists.

    Raises Refused if the file or a parent is a symlink, if a parent is not a folder, and for paths
    in ``.git``.  ``path`` must be relative and must not contain ``..``.

    This is a check, not a lock: see :func:`hold_parents` for a path that is changed.
    """
    # On file systems that ignore case, .GIT is the same folder.
    if ".git" in path.lower().split("/"):
        raise make_refusal(path, "the path belongs to git")
    *parents, name = path.split("/")
    # A string and not a Path, because this runs several times for each file of a repository.
    place = str(folder)
    for parent in parents:
        place = f"{place}/{parent}"
        kind = _kind(place)
        if kind is None:  # A missing folder has nothing below it.
            return folder / path
        if stat.S_ISLNK(kind):
            raise make_refusal(path, f"the parent {parent} is a symlink")
        if not stat.S_ISDIR(kind):
            raise make_refusal(path, f"the parent {parent} is not a folder")
    # A broken symlink counts too, because writing through it would create its target.
    kind = _kind(f"{place}/{name}")
    if kind is not None and stat.S_ISLNK(kind):
        raise make_refusal(path, "this is a symlink")
    return folder / path


def _kind(place: str) -> int | None:
    try:
        return os.lstat(place).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def resolve_inside(folder: Path, path: str) -> Path:
    """Return the location of ``path`` in ``folder``.

    Raises the same errors as :func:`resolve_without_symlinks`, and ValueError for a path that
    leaves the folder, such as ``../x``, or that is too long.
    """
    return resolve_without_symlinks(folder, RelativePath(path))


@contextlib.contextmanager
def hold_parents(folder: Path, path: str) -> Iterator[Path]:
    """Return a context manager with the location of ``path``, whose missing parents are created.

    On Linux, the location stays in its folder if another program moves a parent or replaces it with
    a symlink, such as a switch of branches.  Raises the errors of :func:`resolve_inside`.
    """
    target = resolve_inside(folder, path)
    if not Path(_DESCRIPTORS).is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        yield target
        return
    *parents, name = RelativePath(path).split("/")
    descriptor = os.open(folder, _FOLDER_FLAGS)
    try:
        for parent in parents:
            descriptor = _enter(descriptor, parent, path)
        held = f"{_DESCRIPTORS}/{descriptor}/{name}"
        try:
            yield Path(held)
        except OSError as error:
            if error.filename == held:
                error.filename = str(target)
            raise
    finally:
        os.close(descriptor)


def _enter(descriptor: int, name: str, path: str) -> int:
    """Return the descriptor of a folder in an open folder, which is closed if that succeeds."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=descriptor)
    try:
        found = os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
    except NotADirectoryError as error:
        raise make_refusal(path, f"the parent {name} is a symlink, or not a folder") from error
    os.close(descriptor)
    return found


def is_same_path(one: Path, other: Path) -> bool:
    """Return whether two paths are the same, through links and under other spellings."""
    # Path.resolve raises RuntimeError for a loop of symlinks.
    return os.path.realpath(one) == os.path.realpath(other)


def make_refusal(path: str, why: str) -> Refused:
    """Create, but do not raise, the exception for a path that capsmith must not touch."""
    return Refused(
        "output-not-regular",
        why,
        file=path,
        hint="Move it away; capsmith writes regular files only.",
    )


def remove_empty_parents(folder: Path, target: Path) -> None:
    """Remove empty parents of ``target`` inside ``folder``. ``folder`` itself is kept."""
    # The folder itself stays even if it is empty, because the author created it.
    for parent in target.parents:
        if parent == folder:
            return
        if parent.is_dir():  # else an earlier try has removed it
            if any(parent.iterdir()):
                return
            parent.rmdir()


def digest_file(file: Path) -> str:
    """Return the digest of a regular file, or an empty string if there is no such file."""
    if not file.is_file():
        return ""
    with file.open("rb") as content:  # of any size
        return digest_stream(content)


def read_permissions(file: Path) -> int:
    """Return the permission bits of an existing file, from 0 to 0o777."""
    return stat.S_IMODE(file.stat().st_mode) & 0o777


def keep_attributes(former: Path, file: Path) -> None:
    """Give ``file`` the owner, the group and the access control list of ``former``.

    Other extended attributes are kept too.  Does this as far as the user may; the permissions of
    ``file`` stay.
    """
    if sys.platform == "win32":
        return
    there, here = former.stat(), file.stat()
    # The group first: a user who may not give a file away may still choose among their groups.
    for owner, group in ((-1, there.st_gid), (there.st_uid, -1)):
        if (owner, group) not in ((-1, here.st_gid), (here.st_uid, -1)):
            with contextlib.suppress(PermissionError):
                os.chown(file, owner, group)
    if sys.platform == "linux":
        _keep_extended_attributes(former, file)


def _keep_extended_attributes(former: Path, file: Path) -> None:
    try:
        # A new file may have inherited a list from its folder, which the former one does not have.
        names = {*os.listxattr(former), *os.listxattr(file)}
    except OSError:  # the file system has none
        return
    kept = {name for name in names if name.startswith(_KEPT_ATTRIBUTES)}
    permissions = read_permissions(file)
    for name in kept:
        with contextlib.suppress(OSError):
            if name in os.listxattr(former):
                os.setxattr(file, name, os.getxattr(former, name))
            else:
                os.removexattr(file, name)
    if kept:  # an access control list changes them
        file.chmod(permissions)


def write_synced(target: Path, content: bytes, permissions: int) -> None:
    """Write a file with the given permissions to an existing folder, and sync it to disk.

    On return, the content is on disk.  A new file's name may still be lost in a power failure,
    because the folder is not synced: rename the file afterwards, or be able to write it again.
    """
    with target.open("wb") as file:
        file.write(content)
        file.flush()
        # Not with os.open: the umask would remove permissions, and an existing file would keep its
        # own.
        target.chmod(permissions)
        os.fsync(file.fileno())


def write_all(files: Iterable[tuple[Path, bytes, int]]) -> None:
    """Write files as :func:`write_synced` does, several at a time.

    Missing folders are created. On return, all contents are on disk, so a later rename never refers
    to a file that a power failure would leave empty. Files are written in any order, so nothing may
    refer to them before this function returns. If a write fails, the first error is raised after
    all other writes have finished.
    """
    # A file system commits files that are synced at the same time together; if they were synced one
    # after another, each file would wait for its own commit.
    waiting = list(files)
    for folder in dict.fromkeys(target.parent for target, _, _ in waiting):
        folder.mkdir(parents=True, exist_ok=True)
    # Shared by the threads without a lock: appending to a list is atomic, and only the first error
    # matters.
    failures: list[BaseException] = []
    shares = [waiting[start::_AT_ONCE] for start in range(min(_AT_ONCE, len(waiting)))]
    # Threads are sufficient, because most of the time is spent in fsync, which releases the GIL.
    threads = [threading.Thread(target=_write_share, args=(each, failures)) for each in shares]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException as error:
        failures.append(error)  # the others stop after the file that they are at
    for thread in threads:
        if thread.ident is not None:
            thread.join()
    if failures:
        raise failures[0]


def _write_share(files: Sequence[tuple[Path, bytes, int]], failures: list[BaseException]) -> None:
    try:
        for target, content, permissions in files:
            if failures:
                return
            write_synced(target, content, permissions)
    except BaseException as error:
        failures.append(error)


def replace_file(target: Path, content: bytes) -> None:
    """Write a file atomically, so that it always has either the old or the new content."""
    # Synced before the rename: otherwise the new name could refer to an empty file after a power
    # failure.
    target.parent.mkdir(parents=True, exist_ok=True)
    # Through links, because the rename would replace a link, such as /dev/stdout, by a file.
    target = Path(os.path.realpath(target))
    exists = target.exists()
    if exists and not (
        target.is_file() or target.is_dir()
    ):  # a rename would remove a pipe or a device
        raise NotRegularError(errno.EINVAL, "not a regular file", str(target))
    temporary = _reserve_name(target)
    try:
        write_synced(temporary, content, read_permissions(target) if exists else 0o644)
        if exists:
            keep_attributes(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def create_file(target: Path, content: bytes) -> None:
    """Create a file atomically: either with its whole content, or not at all.

    Raises FileExistsError if ``target`` exists.
    """
    temporary = _reserve_name(target)
    try:
        write_synced(temporary, content, 0o644)
        # A rename would replace a file that another process has created in the meantime; a link
        # fails.
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: the empty file keeps the name for this process.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _reserve_name(target: Path) -> Path:
    """Create an empty file beside ``target``, because a rename across file systems would be a copy.

    No other process can guess or use its name, because the folder may be shared, such as /tmp, and
    no file of the user has it.
    """
    # Imported only if used, because most commands do not need it.
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    os.close(descriptor)
    return Path(name)


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
"""Flag of renameat2(2), supported since Linux 3.15 and glibc 2.28."""
_RENAME_SWAP = 2
"""Flag of renamex_np(2), supported since macOS 10.12."""
_UNSUPPORTED = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV}
)
_NO_LINKS = _UNSUPPORTED | {errno.EMLINK}
"""Errors of file systems without hard links."""


def replace_unchanged(staged: Path, target: Path, expected: str) -> bool:
    """Move ``staged`` to ``target``, or return False if ``target`` has unexpected content.

    ``expected`` is the digest of the content that may be replaced; a missing file may always be
    created.  If this returns False, both files are unchanged.  If it returns True, ``staged`` no
    longer exists, or holds the former content of ``target``.  Raises OSError if a file operation
    fails.  A file that another program is still writing has unexpected content, on Linux.

    If the operating system or the file system, such as NFS, cannot exchange files, a save between
    the comparison and the rename is lost: there is no way to detect it.
    """
    if not os.path.lexists(target):
        return _create(staged, target)
    try:
        is_exchanged = _exchange(staged, target)
    except FileNotFoundError:  # the author has removed it since
        return _create(staged, target)
    if not is_exchanged:
        if digest_file(target) != expected:
            return False
        os.replace(staged, target)
        return True
    if digest_file(staged) == expected and not _is_being_written(staged):
        return True
    _exchange(staged, target)
    return False


def remove_unchanged(target: Path, aside: Path, expected: str) -> bool:
    """Move ``target`` to ``aside``, or return False and keep it if its digest is not ``expected``.

    A missing file counts as removed.  ``aside`` must be on the same file system.  Raises OSError if
    a file operation fails.
    """
    aside.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.rename(aside)
    except FileNotFoundError:
        return True
    if digest_file(aside) == expected and not _is_being_written(aside):
        return True
    if not _create(aside, target):
        # The other program has written the file again, and its newer version wins.
        aside.unlink(missing_ok=True)
    return False


def _create(staged: Path, target: Path) -> bool:
    """Move a file to a name that must be unused; return whether it was, or has the same content."""
    try:
        # A rename would replace a file that another program creates at the same time.
        os.link(staged, target)
    except FileExistsError:
        return digest_file(target) == digest_file(staged)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.replace(staged, target)  # a file system without hard links
        return True
    staged.unlink()
    return True


def _is_being_written(file: Path) -> bool:
    """Return whether another program has a file open for writing.

    Its content would be half of what the program saves, and the rest would go to a file that is
    about to be removed.  The file's name must be unknown to other programs: one that opened it now
    would have to wait.
    """
    if sys.platform != "linux":
        return False
    import fcntl
    from signal import SIGURG

    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        # A program that opens the file meanwhile by another hard link ends the lease by a signal,
        # which is SIGIO by default, and would end this process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, SIGURG)
        # The system grants no lease for reading while a file is open for writing.
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        # Files of another user, and file systems without leases.
        return False
    finally:
        os.close(descriptor)
    return False


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two files in one step; return False if that is not supported."""
    function = _find_exchange()
    if function is None:
        return False
    sys.audit("os.rename", str(one), str(other), -1, -1)
    if function(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


@functools.cache
def _find_exchange() -> Callable[[bytes, bytes], int] | None:
    if os.name != "posix":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        at, path = ctypes.c_int, ctypes.c_char_p
        exchange = library.renameat2
        exchange.argtypes = (at, path, at, path, ctypes.c_uint)
        return lambda one, other: int(exchange(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE))
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        swap = library.renamex_np
        swap.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
        return lambda one, other: int(swap(one, other, _RENAME_SWAP))
    return None
