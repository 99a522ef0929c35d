"""Turns the end of a tenant's audit chain into a signed file outside the database, so that a cut tail shows."""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from gateway.errors import ConfigurationFaults, Fault
from gateway.model import TenantId

_KEY_BYTES = 32


class Found(StrEnum):
    """What lies where a checkpoint should be."""

    GOOD = "good"
    MISSING = "missing"
    FORGED = "forged"
    OTHER_KEY = "other_key"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A record that was the last of its chain, and what has been found wrong with the chain ever since it began."""

    found: Found
    sequence: int = 0
    hash: bytes = b""
    incidents: tuple[str, ...] = ()


# Which file it is and when its content was last changed. Renaming it changes neither.
_Mark = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Known:
    """A checkpoint, and the file that it was read from or written to."""

    mark: _Mark
    checkpoint: Checkpoint


def audit_key(folder: Path) -> bytes:
    """The key of the chain, from `audit.key` in the state folder; made once, readable by its owner alone.

    Raises ConfigurationFaults where the file is not a key. Losing it means that old records can't be verified.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "audit.key"
    if not path.exists():
        _make_key(path)
    key = bytes.fromhex(path.read_text(encoding="ascii")) if _is_key(path) else b""
    if len(key) != _KEY_BYTES:
        message = f"{path} holds no audit key. Restore it from the backup; a new one can't verify the old records."
        raise ConfigurationFaults([Fault(field="state", rule="audit_key", message=message)])
    return key


def _is_key(path: Path) -> bool:
    text = path.read_bytes().strip()
    return len(text) == 2 * _KEY_BYTES and all(byte in b"0123456789abcdef" for byte in text)


def _make_key(path: Path) -> None:
    # Written elsewhere and linked into place, so that of two starts one wins and nobody reads half a key.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    _write(draft, secrets.token_hex(_KEY_BYTES).encode())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


class Checkpoints:
    """The signed checkpoints of a folder, one file a tenant."""

    def __init__(self, folder: Path, key: bytes) -> None:
        self._folder = folder
        self._key = key
        self._name_of_key = hmac.digest(key, b"name of the key", "sha256")[:8].hex()
        self._known: dict[TenantId, _Known] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def look(self, tenant: TenantId) -> Checkpoint:
        """What is there, as it was last read or written where nobody has touched the file since. For every append; one
        who verifies reads the file itself. Raises OSError where it can't be read."""
        known = self._known.get(tenant)
        if known is not None and known.mark == _mark(self._path(tenant)):
            return known.checkpoint
        mark = _mark(self._path(tenant))
        checkpoint = self.read(tenant)
        if mark is not None:
            self._known[tenant] = _Known(mark, checkpoint)
        return checkpoint

    def read(self, tenant: TenantId) -> Checkpoint:
        """What is there. Raises OSError where the file can't be read."""
        try:
            text = self._path(tenant).read_bytes()
        except FileNotFoundError:
            return Checkpoint(Found.MISSING)
        try:
            return self._judge(tenant, orjson.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError):
            return Checkpoint(Found.FORGED)

    def advance(self, tenant: TenantId, sequence: int, digest: bytes, incident: str | None = None) -> None:
        """Signs a newer end, never an older one over it; an incident stays in the file for good. Raises OSError."""
        with self._locked(tenant):
            now = self.look(tenant)
            if incident is None and now.found is Found.GOOD and now.sequence >= sequence:
                return
            incidents = now.incidents if incident is None else (*now.incidents, incident)
            self._replace(tenant, Checkpoint(Found.GOOD, sequence, digest, incidents))

    def _judge(self, tenant: TenantId, content: dict[str, Any]) -> Checkpoint:
        mac = bytes.fromhex(content.pop("mac"))
        if not hmac.compare_digest(mac, self._mac(content)):
            ours = content["key"] == self._name_of_key
            return Checkpoint(Found.FORGED if ours else Found.OTHER_KEY)
        if content["tenant"] != tenant:
            return Checkpoint(Found.FORGED)
        incidents = tuple(content["incidents"])
        return Checkpoint(Found.GOOD, content["sequence"], bytes.fromhex(content["hash"]), incidents)

    def _replace(self, tenant: TenantId, checkpoint: Checkpoint) -> None:
        content: dict[str, Any] = {
            "tenant": tenant,
            "sequence": checkpoint.sequence,
            "hash": checkpoint.hash.hex(),
            "incidents": checkpoint.incidents,
            "key": self._name_of_key,
        }
        signed = content | {"mac": self._mac(content).hex()}
        path = self._path(tenant)
        draft = path.with_name(f".{path.name}.draft")  # one writer at a time holds the lock
        _write(draft, orjson.dumps(signed, option=orjson.OPT_INDENT_2))
        mark = _mark(draft)
        draft.replace(path)
        if mark is not None:
            self._known[tenant] = _Known(mark, checkpoint)

    def _mac(self, content: dict[str, Any]) -> bytes:
        return hmac.digest(self._key, b"checkpoint" + orjson.dumps(content, option=orjson.OPT_SORT_KEYS), "sha256")

    def _path(self, tenant: TenantId) -> Path:
        return self._folder / f"{quote(tenant, safe='')}.json"

    @contextmanager
    def _locked(self, tenant: TenantId) -> Iterator[None]:
        lock = os.open(self._path(tenant).with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _mark(path: Path) -> _Mark | None:
    try:
        status = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
