"""Turns a folder into the keys of turn tokens: the newest signs, older ones verify until their last token has ended.

A file is written once and never changed, so its name says which key it is; a running gateway looks at the names now and
then, and takes a new key up without a restart. What can't be read refuses: nothing is signed or verified by guess.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import orjson
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from gateway.errors import Unavailable
from gateway.keys import new_id
from gateway.ports import Clock

LIFETIME = timedelta(minutes=15)  # of a turn token (design section 5.5)
OVERLAP = LIFETIME + timedelta(minutes=1)  # a signer may not have seen the next key for some seconds
_LOOK_EVERY_S = 2.0
_COOL_DOWN_S = 1.0  # between two looks for a key that nobody knows
_NAME = re.compile(r"(key_[0-9A-Z]{26})\.json", re.ASCII)
_PLACE = ("keys", "turn")


class DamagedKey(Exception):
    """A file of the folder that holds no key; the text names it and says what is wrong."""


@dataclass(frozen=True, slots=True)
class TurnKey:
    """A signing key. `until` is when it stops to verify; None while it is the newest."""

    kid: str
    made_at: datetime
    key: OKPKey
    until: datetime | None

    def verifies(self, now: datetime) -> bool:
        """Whether a token that it signed may still be good."""
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a rotation did."""

    made: str
    kept: tuple[TurnKey, ...]  # older ones that still verify
    dropped: tuple[str, ...]


class KeyFolder:
    """The files. Every method raises OSError where the disk does, and DamagedKey for a file that is no key."""

    def __init__(self, state: Path) -> None:
        self.path = state.joinpath(*_PLACE)

    def names(self) -> frozenset[str]:
        """What keys there are."""
        return frozenset(one.name for one in self.path.iterdir() if _NAME.fullmatch(one.name))

    def read(self, names: frozenset[str]) -> tuple[TurnKey, ...]:
        """The keys of these names, newest first; one that was dropped in the meantime is left out."""
        found = [one for one in (_read(self.path / name) for name in names) if one is not None]
        keys: list[TurnKey] = []
        for made_at, kid, key in sorted(found, reverse=True, key=lambda one: one[:2]):
            keys.append(TurnKey(kid, made_at, key, keys[-1].made_at + OVERLAP if keys else None))
        return tuple(keys)

    def ensure(self, now: datetime) -> None:
        """Makes the first key where there is none; of two starts one makes it."""
        with self._locked():
            if not self.names():
                self._make(now)

    def rotate(self, now: datetime, *, at_once: bool = False) -> Rotation:
        """A new key, which signs from now on. Older ones are dropped once the last token that they signed has ended;
        `at_once` drops them all, unread, and with them every turn token that is out."""
        with self._locked():
            old = self.names()
            newest = None if at_once else next(iter(self.read(old)), None)
            # Later than every other one, whatever the clock says: the newest is the one that signs.
            made = self._make(now if newest is None else max(now, newest.made_at + timedelta(milliseconds=1)))
            kept = () if at_once else tuple(one for one in self.read(self.names())[1:] if one.verifies(now))
            dropped = sorted(old - {f"{one.kid}.json" for one in kept})
            for name in dropped:
                (self.path / name).unlink()
            self._sync()
        return Rotation(made, kept, tuple(name.removesuffix(".json") for name in dropped))

    def _make(self, at: datetime) -> str:
        kid = new_id("key", at)
        content = {"kid": kid, "made_at": at.isoformat(), "jwk": OKPKey.generate_key("Ed25519").as_dict(private=True)}
        # Written elsewhere and renamed into place, so that nobody reads half a key.
        for left in self.path.glob(".key_*"):  # of a start that was killed; whoever has the lock is alone
            left.unlink()
        draft = self.path / f".{kid}.{secrets.token_hex(8)}"
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2))
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.path / f"{kid}.json")
        self._sync()
        return kid

    def _sync(self) -> None:
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        for folder in (self.path.parent, self.path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.path / ".lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


class TurnKeys:
    """The keys as they were when the folder was last looked at. Raises Unavailable where it can't be read."""

    def __init__(self, folder: KeyFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._names: frozenset[str] = frozenset()
        self._keys: Mapping[str, TurnKey] = {}
        self._looked_at: float | None = None

    def signing(self) -> TurnKey:
        """The newest key."""
        self._look(_LOOK_EVERY_S)
        return next(iter(self._keys.values()))

    def find(self, kid: str | None) -> TurnKey | None:
        """The key of that name, if it still verifies; one that is not known is looked for, but not all the time."""
        self._look(_LOOK_EVERY_S)
        key = self._keys.get(kid or "")
        if key is None:
            self._look(_COOL_DOWN_S)
            key = self._keys.get(kid or "")
        return key if key is not None and key.verifies(self._clock.now()) else None

    def _look(self, at_most_every_s: float) -> None:
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < at_most_every_s:
            return
        try:
            names = self._folder.names()
            if names != self._names:
                self._keys = {one.kid: one for one in self._folder.read(names)}
                self._names = names
        except (OSError, DamagedKey) as error:
            raise _unusable() from error
        if not self._keys:
            raise _unusable()
        self._looked_at = now


def _unusable() -> Unavailable:
    return Unavailable(
        "The keys of turn tokens can't be used. The operator finds out why: gateway doctor", retry_after_s=5
    )


def _read(path: Path) -> tuple[datetime, str, OKPKey] | None:
    try:
        content = orjson.loads(path.read_bytes())
        kid, made_at, key = (
            content["kid"],
            datetime.fromisoformat(content["made_at"]),
            OKPKey.import_key(content["jwk"]),
        )
        good = kid == path.stem and made_at.tzinfo is not None and key.curve_name == "Ed25519" and key.is_private
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, JoseError) as error:
        raise DamagedKey(f"{path} holds no key: {type(error).__name__}") from error
    if not good:
        raise DamagedKey(f"{path} holds another key than its name says, or one that can't sign")
    return made_at, kid, key
