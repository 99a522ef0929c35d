"""Turns where an operator keeps a secret (a file, an environment variable) into the secret, or says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gateway.errors import ConfigurationFaults, Fault

_LONGEST = 4_096


class ClientSecret:
    """A secret that is read when it is first needed, and kept: who lists people on the command line needs none."""

    def __init__(self, file: Path | None, variable: str | None, environ: Mapping[str, str]) -> None:
        """`file`, or else `variable` of `environ`."""
        self._file = file
        self._variable = variable or ""
        self._environ = environ
        self._secret: str | None = None

    def read(self) -> str:
        """The secret, without line ends around it.

        Raises ConfigurationFaults where there is none; what it says never holds a part of one.
        """
        if self._secret is None:
            self._secret = self._found()
        return self._secret

    def _found(self) -> str:
        field = "client_secret_env" if self._file is None else "client_secret_file"
        where = self._variable if self._file is None else self._file
        try:
            text = self._environ.get(self._variable, "") if self._file is None else _content(self._file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not text"
            raise ConfigurationFaults([Fault(field=field, rule="readable", message=f"{where}: {reason}")]) from None
        secret = text.strip("\r\n")
        if not secret.strip() or len(secret) > _LONGEST or not secret.isprintable():
            raise ConfigurationFaults(
                [Fault(field=field, rule="secret", message=f"{where} holds no secret of one line")]
            )
        return secret


def _content(file: Path) -> str:
    with file.open(encoding="utf-8") as opened:
        return opened.read(_LONGEST + 3)
