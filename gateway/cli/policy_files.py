"""Turns a published version into two files, the document and what it was pulled as, and reads both again.

`visibility.csv` is the document, byte for byte. `visibility.base.json` beside it says which version it stands on; both
belong into Git, since whoever pushes from another clone, or a job of CI, has to know the base too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.errors import Invalid
from gateway.operations.policy import InForce
from gateway.policy.document_files import read_bytes, unix

DOCUMENT: Final = "visibility.csv"
BASE_ENDING: Final = ".base.json"
_BASE_FIELD: Final = "BASE"  # what a command calls the file in its faults
_LONGEST_BASE: Final = 64 * 1024


class Base(BaseModel):
    """The version that a document was pulled as."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # a newer gateway may have written more

    tenant: str = Field(min_length=1)
    version: int = Field(ge=0)
    epoch: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")

    @classmethod
    def of(cls, found: InForce) -> Base:
        """What is in force, as the base of what will be written on top of it."""
        version = found.version
        return cls(
            tenant=version.tenant,
            version=version.version,
            epoch=found.epoch,
            sha256=hashlib.sha256(version.text.encode()).hexdigest(),
        )

    def is_version_of(self, other: Base) -> bool:
        """Whether both are the same version. Epochs rise with every change of roles too, and say nothing of it."""
        return (self.tenant, self.version, self.sha256) == (other.tenant, other.version, other.sha256)

    def is_text(self, data: bytes) -> bool:
        """Whether the bytes are the text of this version, with the line ends of any system."""
        plain = unix(data)
        return self.sha256 in {hashlib.sha256(one).hexdigest() for one in (data, plain, plain.replace(b"\n", b"\r\n"))}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document lies."""

    document: Path

    @property
    def base(self) -> Path:
        """The file that says which version the document stands on."""
        return self.document.with_name(self.document.name.removesuffix(".csv") + BASE_ENDING)

    @property
    def suites(self) -> Path:
        """The folder with what the document has to answer."""
        return self.document.parent / "tests"

    def held(self) -> bytes | None:
        """What the document holds now, or None where it is not there. Raises Invalid where it can't be read."""
        return read_bytes(self.document) if os.path.lexists(self.document) else None

    def pulled(self) -> Base | None:
        """What the document was pulled as, or None where nothing says so. Raises Invalid for a file that is no such."""
        if not os.path.lexists(self.base):
            return None
        try:
            return Base.model_validate(orjson.loads(read_bytes(self.base)[:_LONGEST_BASE]))
        except (orjson.JSONDecodeError, ValidationError) as error:
            message = (
                f"{self.base} does not say which version {self.document.name} stands on. Where Git left a conflict in "
                f"it, keep the side with the higher version; else take it out and pull again."
            )
            raise Invalid.of(_BASE_FIELD, "readable", message) from error

    def keep(self, found: InForce, *, document: bool) -> None:
        """Writes what is in force, the document first: whoever is stopped between the two has a document that the next
        pull knows again, and never an old one that passes for a change of the new. Raises Invalid where it can't."""
        base = orjson.dumps(Base.of(found).model_dump(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if document:
            _write(self.document, found.version.text.encode())
        _write(self.base, base)


def place_at(path: Path) -> Place:
    """The document that a path means: a file by its ending, or by being there; else the one in that folder."""
    if path.suffix == ".csv" and not path.is_dir():
        return Place(path)
    if path.exists() and not path.is_dir():
        raise Invalid.of("PATH", "document", f"{path} is no folder, and no document: the name of one ends in .csv.")
    return Place(path / DOCUMENT)


def _write(path: Path, data: bytes) -> None:
    """The whole of it or nothing: written beside, put on the disk, and renamed."""
    target = path.resolve()  # a link stays one, and what it leads to is written
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        _put_on_disk(target.parent)
    except OSError as error:
        raise Invalid.of("FILE", "writable", f"{path} can't be written: {error.strerror}.") from error


def _put_on_disk(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
