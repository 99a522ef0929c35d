"""Turns the file of a document into its text: nothing but a regular file, of a bounded size, in UTF-8."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from gateway.errors import Invalid
from gateway.policy.documents import MOST_BYTES
from gateway.policy.tokens import FIELD

NO_FILE: Final = "FILE"  # the argument of a command that names a file


def read_document(path: Path) -> str:
    """The text of a document.

    A line end of Windows is one of everywhere else, so that a checkout there holds the same text; nothing else of the
    file is read as another text than it is. Raises Invalid for a file that can't be read, is too large or is not UTF-8.
    """
    return text_of(read_bytes(path), path)


def text_of(data: bytes, path: Path) -> str:
    """The text that the bytes of a document are. Raises Invalid where they are not UTF-8."""
    try:
        return unix(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid.of(FIELD, "utf-8", f"{path} is not UTF-8 text. Save it again as UTF-8.") from error


def unix(data: bytes) -> bytes:
    """The bytes with every line end as it is outside of Windows."""
    return data.replace(b"\r\n", b"\n")


def read_bytes(path: Path) -> bytes:
    """What the file holds. Raises Invalid for one that is missing, no regular file, or larger than any document."""
    try:
        # A pipe that nobody writes to would keep us waiting for ever.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Invalid.of(NO_FILE, "readable", f"{path} is no file. Name one that holds the document.")
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Invalid.of(NO_FILE, "readable", f"{path} can't be read: {error.strerror}.") from error
    if len(data) > MOST_BYTES:
        message = f"{path} is larger than {MOST_BYTES // 1024**2} MiB; say it in fewer rows."
        raise Invalid.of(FIELD, "size", message)
    return data
