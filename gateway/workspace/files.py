"""Turns paths inside one agent's folder into texts and back; the only module that opens workspace files.

Confinement (design section 6): every name of a path is opened by itself, without following a link, from a descriptor
of the folder before it. Checks are made on what was opened, so that swapping a folder for a link at any moment changes
which error comes, and never which file is reached. All of it blocks: call it in a thread.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.workspace.paths import OURS, components, is_component
from gateway.workspace.problems import (
    FileNotText,
    FileProblem,
    FileTooLarge,
    FileUnavailable,
    FileUnsafe,
    Identity,
    problem_of,
)

FILE_LIMIT = 1024 * 1024  # bytes; what a context or a tool reads of one file, and what a writer may make of it

_PLAIN = os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = _PLAIN | os.O_RDONLY | os.O_DIRECTORY
# Without O_NONBLOCK, opening a FIFO would wait for its other end for ever.
_READ = _PLAIN | os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_WRITE = _PLAIN | os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_MORE = 4096


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it was when it was opened: strict UTF-8, one name, a regular file."""

    path: str
    text: str
    data: bytes
    identity: Identity

    @property
    def size(self) -> int:
        """How many bytes."""
        return len(self.data)

    @property
    def sha256(self) -> str:
        """The hash of the bytes, in hex; worked out at each call, since most readers don't need it."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """One agent's folder, `folder`, directly under its tenant's `root`. Holds no descriptor and caches nothing.

    The root itself must be a real folder; what lies above it is the operator's.
    """

    root: Path
    folder: str

    def __post_init__(self) -> None:
        if not is_component(self.folder):
            raise FileUnsafe(self.folder, "an agent's folder is one plain name")

    def read(self, path: str, *, limit: int = FILE_LIMIT) -> FileText:
        """The whole file, of at most `limit` bytes. Raises a FileProblem where there is none that may be used."""
        names = components(path)
        base = self._open()
        try:
            return _read(base, names, path, limit)
        finally:
            os.close(base)

    def read_many(self, paths: Iterable[str], *, limit: int = FILE_LIMIT) -> dict[str, FileText | FileProblem]:
        """Each path with its text or its problem, so that a whole context is one hop to a thread.

        Raises:
            FileUnavailable, FileUnsafe: the agent's folder itself can't be opened.

        """
        base = self._open()
        try:
            return {path: _read_or_problem(base, path, limit) for path in paths}
        finally:
            os.close(base)

    def replace(self, path: str, text: str, *, before_rename: Callable[[], None] | None = None) -> FileText:
        """Puts `text` in the place of a file, or of none, in one step: a reader sees the old text or the new.

        Call it under the file's lock. The new text is on the disk, under a name of ours, when `before_rename` is called
        for the last checks; if that raises, no file and no folder is left behind. Missing folders are made after it.
        When this returns, the file and the way to it are durable.

        Raises:
            FileProblem: nothing was replaced, but for a FileUnavailable of the very last step (the folder's fsync).

        """
        names = components(path)
        data = _encode(path, text)
        base = self._open()
        try:
            identity = _replace(base, names, data, path, before_rename)
        except OSError as error:
            raise problem_of(path, error) from error
        finally:
            os.close(base)
        return FileText(path, text, data, identity)

    def paths_under(self, prefix: str, *, limit: int) -> tuple[str, ...]:
        """Every regular file below the folder `prefix` ("" for all), sorted; links and odd names are left out.

        Raises:
            FileTooLarge: there are more than `limit`.

        """
        base = self._open()
        try:
            return _paths_under(base, components(prefix) if prefix else (), limit)
        except OSError as error:
            raise problem_of(prefix, error) from error
        finally:
            os.close(base)

    def make_folder(self, path: str) -> None:
        """Makes a folder and those above it, where they are missing."""
        base = self._open()
        try:
            os.close(_make_folders(base, components(path)))
        except OSError as error:
            raise problem_of(path, error) from error
        finally:
            os.close(base)

    def exists(self) -> bool:
        """Whether the agent's folder is there. Raises FileUnsafe where something else has its name."""
        try:
            status = os.lstat(self.root / self.folder)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise problem_of(self.folder, error) from error
        if not stat.S_ISDIR(status.st_mode):
            raise FileUnsafe(self.folder, "it is not a folder")
        return True

    def _open(self) -> int:
        try:
            root = os.open(self.root, _FOLDER)
            try:
                return os.open(self.folder, _FOLDER, dir_fd=root)
            finally:
                os.close(root)
        except FileNotFoundError as error:
            # A volume that is not mounted must not look like an agent without memory.
            raise FileUnavailable(self.folder, "the agent's folder is not there") from error
        except OSError as error:
            raise problem_of(self.folder, error) from error


@contextmanager
def new_workspace(root: Path, folder: str) -> Iterator[Workspace]:
    """A new agent folder, filled in the `with` and shown under its name afterwards: whole, or not at all.

    Raises:
        FileUnavailable: it can't be made, or somebody else put something there meanwhile.

    """
    final = Workspace(root, folder)
    staged = Workspace(root, f".new-{secrets.token_hex(8)}")
    try:
        root.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        (root / staged.folder).mkdir(mode=_PRIVATE_FOLDER)
    except OSError as error:
        raise problem_of(folder, error) from error
    try:
        yield staged
        _show(root, staged.folder, final.folder)
    finally:
        shutil.rmtree(root / staged.folder, ignore_errors=True)


def _show(root: Path, staged: str, final: str) -> None:
    try:
        folder = os.open(root, _FOLDER)
        try:
            os.rename(staged, final, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise problem_of(final, error) from error


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_or_problem(base: int, path: str, limit: int) -> FileText | FileProblem:
    try:
        return _read(base, components(path), path, limit)
    except FileProblem as problem:
        return problem


def _read(base: int, names: tuple[str, ...], path: str, limit: int) -> FileText:
    try:
        file = _open_below(base, names, path)
        try:
            return _load(file, path, limit)
        finally:
            os.close(file)
    except OSError as error:
        raise problem_of(path, error) from error


def _open_below(base: int, names: tuple[str, ...], path: str) -> int:
    if len(names) == 1:
        return _open_file(base, names[0], path)
    folder = _descend(base, names[:-1])
    try:
        return _open_file(folder, names[-1], path)
    finally:
        os.close(folder)


def _open_file(folder: int, name: str, path: str) -> int:
    try:
        return os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        problem = problem_of(path, error)
        with suppress(OSError):
            behind = os.stat(name, dir_fd=folder)
            problem.leads_to = behind.st_dev, behind.st_ino
        raise problem from error


def _descend(base: int, names: tuple[str, ...]) -> int:
    """A descriptor of the folder that `names` lead to, for the caller to close."""
    folder = os.dup(base)
    for name in names:
        above = folder
        try:
            folder = os.open(name, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return folder


def _load(file: int, path: str, limit: int) -> FileText:
    status = os.fstat(file)
    _require_plain(status, path)
    if status.st_size > limit:
        raise FileTooLarge(path, limit)
    data = os.read(file, status.st_size + 1)
    while len(data) <= limit and (more := os.read(file, _MORE)):  # it may have grown since
        data += more
    if len(data) > limit:
        raise FileTooLarge(path, limit)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileNotText(path) from error
    return FileText(path, text, data, (status.st_dev, status.st_ino))


def _require_plain(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileUnsafe(path, "it is not a regular file")
    # None at all is fine: somebody saved while we had the file open, and we read the text of just before.
    if status.st_nlink > 1:
        raise FileUnsafe(path, "it has a second name (a hard link)")


def _paths_under(base: int, start: tuple[str, ...], limit: int) -> tuple[str, ...]:
    found: list[str] = []
    waiting = [start]
    while waiting:
        names = waiting.pop()
        files, folders = _entries(base, names)
        found += ["/".join((*names, name)) for name in files]
        waiting += [(*names, name) for name in folders]
        if len(found) > limit:
            raise FileTooLarge("/".join(start), limit)
    return tuple(sorted(found))


def _entries(base: int, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Names of the regular files and of the folders in a folder; neither where it is not there (any more)."""
    try:
        folder = _descend(base, names)
    except FileNotFoundError:
        return [], []
    try:
        with os.scandir(folder) as entries:
            good = [entry for entry in entries if is_component(entry.name)]
            files = [entry.name for entry in good if entry.is_file(follow_symlinks=False)]
            return files, [entry.name for entry in good if entry.is_dir(follow_symlinks=False)]
    finally:
        os.close(folder)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _encode(path: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FileNotText(path) from error


def _replace(
    base: int, names: tuple[str, ...], data: bytes, path: str, before_rename: Callable[[], None] | None
) -> Identity:
    folder, missing = _descend_as_far_as_there_is(base, names[:-1])
    try:
        previous = None if missing else _status(folder, names[-1])
        if previous is not None:
            _require_plain(previous, path)
        # The name is always the same, so that the next save clears up after a killed one.
        temporary = f"{OURS}{hashlib.sha256(path.encode()).hexdigest()[:32]}.tmp"
        with _temporary(folder, temporary, path) as file:
            identity = _fill(file, data, previous)
            if before_rename is not None:
                before_rename()
            _move(folder, temporary, missing, names[-1])
        return identity
    finally:
        os.close(folder)


def _descend_as_far_as_there_is(base: int, names: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """A descriptor of the last folder on the way that exists, for the caller to close, and the names that don't."""
    folder = os.dup(base)
    for position, name in enumerate(names):
        above = folder
        try:
            folder = os.open(name, _FOLDER, dir_fd=above)
        except FileNotFoundError:
            return above, names[position:]
        except OSError:
            os.close(above)
            raise
        os.close(above)
    return folder, ()


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def _temporary(folder: int, name: str, path: str) -> Iterator[int]:
    """An empty file of ours, gone after the `with` unless it was renamed."""
    file = os.open(name, _WRITE, _PRIVATE_FILE, dir_fd=folder)
    try:
        _claim(folder, name, file, path)
        try:
            yield file
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(file)


def _claim(folder: int, name: str, file: int, path: str) -> None:
    """Makes sure that we alone write this temporary file, which may be left from a killed writer, and empties it.

    Writers hold the file's lock, so that nobody ever loses here; without it they would be refused, and nothing torn.
    """
    status = os.fstat(file)
    _require_plain(status, path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = _status(folder, name)
    except BlockingIOError:
        named = None
    if named is None or not os.path.samestat(named, status):
        raise FileUnavailable(path, "somebody else is writing it")
    os.ftruncate(file, 0)


def _fill(file: int, data: bytes, previous: os.stat_result | None) -> Identity:
    """Writes and fsyncs; owner and mode are those of the file that it will replace."""
    if previous is not None:
        with suppress(PermissionError):  # only root may give files away
            os.fchown(file, previous.st_uid, previous.st_gid)
    os.fchmod(file, _PRIVATE_FILE if previous is None else stat.S_IMODE(previous.st_mode))
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
    os.fsync(file)
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def _move(folder: int, temporary: str, missing: tuple[str, ...], name: str) -> None:
    target = _make_folders(folder, missing)
    try:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=target)
        os.fsync(target)
    finally:
        os.close(target)


def _make_folders(base: int, names: tuple[str, ...]) -> int:
    """Makes what is missing of a way, each step durable; a descriptor of its end, for the caller to close."""
    folder = os.dup(base)
    for name in names:
        above = folder
        try:
            with suppress(FileExistsError):
                os.mkdir(name, _PRIVATE_FOLDER, dir_fd=above)
            folder = os.open(name, _FOLDER, dir_fd=above)
            os.fsync(above)
        finally:
            os.close(above)
    return folder
