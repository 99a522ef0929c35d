"""The file of a document: what is read of it, and what is refused before anything of it is believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.errors import Invalid
from gateway.policy.document_files import read_document
from gateway.policy.documents import MOST_BYTES, lint
from tests.clock import SettableClock

ROW = "p, role:member, *, memory/daily, agent, shared, private, read, allow"


def refused(path: Path) -> tuple[str, str, str]:
    """Field, rule and message of the one fault."""
    with pytest.raises(Invalid) as found:
        read_document(path)
    (fault,) = found.value.faults
    return fault.field, fault.rule, fault.message


def test_line_ends_of_windows_are_line_ends_and_nothing_else_is_changed(tmp_path: Path) -> None:
    """A checkout on Windows is the same text. A lone CR hides what follows it on some screens: it stays, and is a
    fault here as it is over REST."""
    file = tmp_path / "a.csv"
    file.write_bytes(f"# one\r\n{ROW}\r\n".encode())
    assert read_document(file) == f"# one\n{ROW}\n"

    file.write_bytes(f"# one\r{ROW}\n\n".encode())
    assert read_document(file) == f"# one\r{ROW}\n\n"
    assert [fault.rule for fault in lint(read_document(file), SettableClock().now())[0]] == ["characters"]

    file.write_bytes(b"\xef\xbb\xbf#")
    assert read_document(file) == "\ufeff#"  # which lint names


def test_what_is_no_document_is_refused_and_said_so(tmp_path: Path) -> None:
    """Missing, a folder, a pipe that nobody writes to, other bytes than UTF-8, and more than any document holds."""
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    (tmp_path / "bytes").write_bytes(b"p, \xff")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with (tmp_path / "largest").open("wb") as file:
        file.truncate(MOST_BYTES)

    assert refused(tmp_path / "missing")[:2] == ("FILE", "readable")
    assert refused(pipe)[:2] == refused(folder)[:2] == ("FILE", "readable")
    assert "is not UTF-8" in refused(tmp_path / "bytes")[2]
    assert refused(tmp_path / "large")[1] == "size"
    assert len(read_document(tmp_path / "largest")) == MOST_BYTES
