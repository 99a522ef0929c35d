"""Turns the settings for Redis into all that replicas share there, opened and closed together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from gateway.backends.redis.connection import RedisConnection, connection
from gateway.backends.redis.epochs import RedisEpochs
from gateway.backends.redis.locks import RedisLocks
from gateway.errors import ConfigurationFaults, Fault
from gateway.ports import Clock
from gateway.settings.redis import Redis as RedisSettings
from gateway.workspace.locks import FileLocks

_LONGEST = 4_096


class Replicas:
    """What the replicas of one installation tell each other."""

    def __init__(self, shared: RedisConnection, prefix: str, clock: Clock) -> None:
        self.connection = shared
        self._prefix = prefix
        self.epochs = RedisEpochs(shared, prefix, clock)

    @classmethod
    def of(cls, settings: RedisSettings, environ: Mapping[str, str], clock: Clock) -> Self | None:
        """None without `redis.url`. Raises ConfigurationFaults for a password that is not where the settings say."""
        if settings.url is None:
            return None
        return cls(connection(settings, _password(settings, environ)), settings.prefix, clock)

    def locks(self, local: FileLocks) -> RedisLocks:
        """Locks that hold here, as `local` does, and over all replicas."""
        return RedisLocks(self.connection, self._prefix, local)

    async def __aenter__(self) -> Self:
        """Begins to listen. Redis may be away: then everything is refused until it is heard."""
        self.connection.open()
        await self.epochs.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.epochs.__aexit__(kind, error, trace)
        finally:
            await self.connection.aclose()


def _password(settings: RedisSettings, environ: Mapping[str, str]) -> str | None:
    """The password, which no fault shows a part of."""
    if settings.password_file is not None:
        return _good(_content(settings.password_file), "redis.password_file", str(settings.password_file))
    if settings.password_env is not None:
        variable = settings.password_env
        return _good(environ.get(variable, ""), "redis.password_env", variable)
    return None


def _content(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(_LONGEST + 3)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        fault = Fault(field="redis.password_file", rule="readable", message=f"{file}: {reason}")
        raise ConfigurationFaults([fault]) from None


def _good(text: str, field: str, where: str) -> str:
    password = text.strip("\r\n")
    if not password.strip() or len(password) > _LONGEST or not password.isprintable():
        raise ConfigurationFaults([Fault(field=field, rule="secret", message=f"{where} holds no secret of one line")])
    return password
