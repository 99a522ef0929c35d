"""Turns where an operator keeps a secret (a file, an environment variable) into the secret, or says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gateway.errors import ConfigurationFaults, Fault

_LONGEST = 4_096


def read_secret(file: Path | None, variable: str | None, environ: Mapping[str, str]) -> str:
    """The secret, without line ends around it.

    Raises ConfigurationFaults where it is not there or empty; what it says never holds a part of the secret.
    """
    field, where = ("client_secret_file", file) if file is not None else ("client_secret_env", variable)
    try:
        text = environ.get(variable or "", "") if file is None else _content(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise ConfigurationFaults([Fault(field=field, rule="readable", message=f"{where}: {reason}")]) from None
    secret = text.strip("\r\n")
    if not secret or len(secret) > _LONGEST:
        raise ConfigurationFaults([Fault(field=field, rule="secret", message=f"{where} holds no secret")])
    return secret


def _content(file: Path) -> str:
    with file.open(encoding="utf-8") as opened:
        return opened.read(_LONGEST + 3)
