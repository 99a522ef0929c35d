"""Tests that a secret is read from where the operator keeps it, and that no fault shows a part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigurationFaults
from gateway.identity.secret_sources import ClientSecret


def test_a_secret_is_what_the_file_or_the_variable_holds(tmp_path: Path) -> None:
    """Ours: editors end a file with a line end; spaces are part of a secret."""
    file = tmp_path / "secret"
    file.write_bytes(b" pass phrase \r\n")

    of_file, of_variable = ClientSecret(file, None, {}), ClientSecret(None, "ACME_SECRET", {"ACME_SECRET": "s3cret\n"})
    assert (of_file.read(), of_variable.read()) == (" pass phrase ", "s3cret")
    file.unlink()
    assert of_file.read() == " pass phrase "  # read once
    assert "s3cret" not in repr(of_variable)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (None, "readable"),
        (b"\xff\xfe4711", "readable"),
        (b"\n", "secret"),
        (b"47\n11", "secret"),
        (b"4711" * 1_025, "secret"),
    ],
)
def test_a_secret_that_is_not_there_refuses_the_start(tmp_path: Path, content: bytes | None, rule: str) -> None:
    """Fail closed: an empty secret would be sent, and no server should take it."""
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigurationFaults) as caught:
        ClientSecret(file, None, {}).read()

    assert [(one.field, one.rule) for one in caught.value.faults] == [("client_secret_file", rule)]
    assert "4711" not in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("environ", [{}, {"ACME_SECRET": ""}, {"acme_secret": "x"}])
def test_a_variable_that_is_not_set_refuses_the_start(environ: dict[str, str]) -> None:
    """The same, by the variable's name."""
    with pytest.raises(ConfigurationFaults) as caught:
        ClientSecret(None, "ACME_SECRET", environ).read()

    assert [(one.field, one.rule) for one in caught.value.faults] == [("client_secret_env", "secret")]
    assert "ACME_SECRET" in str(caught.value)
