"""Turns what can be wrong with a workspace file into errors that carry their own status.

* FileProblem
  + FileMissing       404   there is no such file
  + FileUnsafe        409   a link, a second name, not a regular file, or a path outside the grammar
  + FileTooLarge      413   over the limit of its reader or writer
  + FileNotText       409   not strict UTF-8
  + FileUnavailable   503   the disk or its permissions refuse, or the agent's folder is away
"""

from __future__ import annotations

import errno
import os

from gateway.errors import Conflict, GatewayError, NotFound, TooLarge, Unavailable

# What the kernel answers for a link, a socket, a device without a driver, or a folder where a file should be.
_UNSAFE = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG})


Identity = tuple[int, int]  # device and inode: the same file, whatever it is called


class FileProblem(GatewayError):
    """A workspace file that can't be used; `path` is how its caller named it, relative to the agent's folder.

    `leads_to` is the file behind a name that is a link or can't be opened, where there is one: only for comparing.
    """

    path: str
    leads_to: Identity | None = None


class FileMissing(FileProblem, NotFound):
    """There is no such file. Its folder is there and could be looked into."""

    def __init__(self, path: str) -> None:
        NotFound.__init__(self)
        self.path = path


class FileUnsafe(FileProblem, Conflict):
    """A path or a file that could lead out of the agent's folder, or to a second name for a file in it."""

    def __init__(self, path: str, reason: str) -> None:
        Conflict.__init__(self, f"This workspace file can't be used safely: {reason}. Put a plain file in its place.")
        self.path = path
        self.reason = reason


class FileTooLarge(FileProblem, TooLarge):
    """More bytes than the limit."""

    def __init__(self, path: str, limit: int) -> None:
        TooLarge.__init__(self, f"This workspace file is over its limit of {limit:,} bytes. Make it shorter.")
        self.path = path
        self.limit = limit


class FileNotText(FileProblem, Conflict):
    """Bytes that are not strict UTF-8; they are never replaced by something that looks like text."""

    def __init__(self, path: str) -> None:
        Conflict.__init__(self, "This workspace file is not UTF-8 text. Save it again as UTF-8.")
        self.path = path


class FileUnavailable(FileProblem, Unavailable):
    """The file may be there, but can't be read or written now. Never to be taken for a missing one."""

    def __init__(self, path: str, reason: str) -> None:
        Unavailable.__init__(self, f"A workspace file can't be reached right now ({reason}). Try again in a moment.")
        self.path = path
        self.reason = reason


def problem_of(path: str, error: OSError) -> FileProblem:
    """The problem that an error of the operating system stands for; one that we don't know is FileUnavailable."""
    if error.errno == errno.ENOENT:
        return FileMissing(path)
    if error.errno in _UNSAFE:
        return FileUnsafe(path, "it, or a folder above it, is a link or not a regular file")
    return FileUnavailable(path, os.strerror(error.errno or errno.EIO))
