"""The keys of turn tokens: made once, taken over with an overlap, and refused when they can't be read (design 5.5)."""

from __future__ import annotations

import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
from joserfc.jwk import OKPKey

from gateway.errors import Unauthenticated, Unavailable
from gateway.identity.turn_keys import OVERLAP, DamagedKey, KeyFolder, TurnKeys
from gateway.identity.turn_tokens import Origins, TurnTokens
from gateway.model import Identity, Principal, ProfileId, Requester
from tests.cast import root
from tests.clock import SettableClock
from tests.identity.conftest import ACME, Store

ROOT = Path(__file__).parents[2]
LOOK_S = 2


@pytest.fixture
def folder(tmp_path: Path, clock: SettableClock) -> KeyFolder:
    """A folder with its first key."""
    made = KeyFolder(tmp_path / "state")
    made.ensure(clock.now())
    return made


@pytest.fixture
def keys(folder: KeyFolder, clock: SettableClock) -> TurnKeys:
    """The keys of a running gateway."""
    return TurnKeys(folder, clock)


def kid_in(folder: KeyFolder) -> str:
    """The newest key on disk."""
    return folder.read(folder.names())[0].kid


def test_the_first_start_makes_one_and_later_ones_find_it(folder: KeyFolder, clock: SettableClock) -> None:
    """For its owner alone, and nothing else is left in the folder."""
    before = folder.names()
    folder.ensure(clock.now())
    assert folder.names() == before
    assert len(before) == 1
    (file,) = (folder.path / name for name in before)
    for path, mode in ((file, 0o600), (folder.path, 0o700), (folder.path.parent, 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert sorted(one.name for one in folder.path.iterdir()) == [".lock", file.name]


def test_a_running_gateway_signs_with_a_new_key_within_seconds(
    folder: KeyFolder, keys: TurnKeys, clock: SettableClock
) -> None:
    """Without a restart; the folder is not looked at for every token."""
    first = keys.signing().kid
    made = folder.rotate(clock.now()).made
    assert keys.signing().kid == first

    clock.advance(LOOK_S)

    assert keys.signing().kid == made
    assert keys.find(first) is not None


def test_a_key_that_is_not_known_is_looked_for_with_a_cool_down(
    folder: KeyFolder, keys: TurnKeys, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of made-up names costs a look a second."""
    looks: list[float] = []
    names = KeyFolder.names

    def counting(self: KeyFolder) -> frozenset[str]:
        looks.append(clock.monotonic())
        return names(self)

    keys.signing()
    made = folder.rotate(clock.now()).made
    monkeypatch.setattr(KeyFolder, "names", counting)
    for _ in range(1_000):
        assert keys.find("key_made_up") is None
        assert keys.find(None) is None
    assert looks == []
    clock.advance(1)
    assert keys.find(made) is not None
    for _ in range(1_000):
        assert keys.find("key_made_up") is None
    assert len(looks) == 1


def test_an_older_key_verifies_until_its_last_token_has_ended(
    folder: KeyFolder, keys: TurnKeys, clock: SettableClock
) -> None:
    """Each counts until the overlap after the next one; rotating drops what is past it, and not before."""
    first = keys.signing().kid
    clock.advance(60)
    second = folder.rotate(clock.now())
    assert ([one.kid for one in second.kept], second.dropped) == ([first], ())
    clock.advance(60)
    third = folder.rotate(clock.now())
    assert ([one.kid for one in third.kept], third.dropped) == ([second.made, first], ())

    clock.advance(OVERLAP.total_seconds() - 60 - 0.001)
    assert keys.find(first) is not None
    clock.advance(0.001)
    assert keys.find(first) is None
    assert keys.find(second.made) is not None
    assert first in {one.kid for one in folder.read(folder.names())}

    fourth = folder.rotate(clock.now())
    assert fourth.dropped == (first,)
    assert [one.kid for one in fourth.kept] == [third.made, second.made]
    assert {one.kid for one in folder.read(folder.names())} == {second.made, third.made, fourth.made}


def test_the_newest_signs_also_where_the_clock_was_set_back(
    folder: KeyFolder, keys: TurnKeys, clock: SettableClock
) -> None:
    """A key that is older than the one before would never be used."""
    made = folder.rotate(clock.now() - timedelta(days=1)).made

    assert keys.signing().kid == made == kid_in(folder)


async def test_tokens_live_through_a_rotation_and_a_dropped_key_ends_them(
    store: Store, folder: KeyFolder, keys: TurnKeys, clock: SettableClock
) -> None:
    """Verified ones too: what is remembered dies with its key."""
    alice = await store.person("alice")
    await store.identities.link(ACME, _login(alice.id), clock.now())
    principal = Principal(
        tenant=ACME, issuer="https://login.test", subject="a", credential="oidc", scopes=frozenset({"*"})
    )
    who = Requester(tenant=ACME, profile=alice, principal=principal, epoch=1)
    tokens = TurnTokens(keys, Origins(store.identities, clock), clock, store.epochs)
    old, _, _ = tokens.mint(who, root("mine", "alice"))
    await tokens.verify(old)

    folder.rotate(clock.now())
    clock.advance(LOOK_S)
    new, _, _ = tokens.mint(who, root("mine", "alice"))
    for token in (old, new):
        await tokens.verify(token)
    folder.rotate(clock.now(), at_once=True)
    clock.advance(LOOK_S)

    for token in (old, new):
        with pytest.raises(Unauthenticated) as caught:
            await tokens.verify(token)
        assert caught.value.reason == "key_unknown"
    await tokens.verify(tokens.mint(who, root("mine", "alice"))[0])


def _login(profile: str) -> Identity:
    return Identity(issuer="https://login.test", subject="a", profile=ProfileId(profile))


# ── what can't be used ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b'{"kid": "x"}', b'{"kid": 1, "made_at": 2, "jwk": 3}'],
    ids=["empty", "half", "list", "binary", "incomplete", "numbers"],
)
def test_a_damaged_file_refuses_until_it_is_put_right(
    folder: KeyFolder, keys: TurnKeys, clock: SettableClock, content: bytes
) -> None:
    """Nothing is signed or verified by guess, also not with a key that was good; `at_once` makes a clean start."""
    first = keys.signing().kid
    damaged = folder.path / "key_01ZZZZZZZZZZZZZZZZZZZZZZZZ.json"
    damaged.write_bytes(content)
    clock.advance(LOOK_S)
    with pytest.raises(Unavailable, match="gateway doctor"):
        keys.signing()
    with pytest.raises(Unavailable, match="gateway doctor"):
        keys.find(first)
    with pytest.raises(DamagedKey, match=damaged.name):
        folder.rotate(clock.now())
    damaged.unlink()
    assert keys.signing().kid == first

    damaged.write_bytes(content)
    made = folder.rotate(clock.now(), at_once=True)
    clock.advance(LOOK_S)
    assert keys.signing().kid == made.made
    assert set(made.dropped) == {first, damaged.stem}


@pytest.mark.parametrize("change", ["another name", "no time zone", "public", "another curve"])
def test_a_file_that_holds_another_key_is_damaged(folder: KeyFolder, change: str) -> None:
    """A public key can't sign, and a copy under another name would count twice."""
    (name,) = folder.names()
    file = folder.path / name
    content = orjson.loads(file.read_bytes())
    if change == "another name":
        file = folder.path / "key_01ZZZZZZZZZZZZZZZZZZZZZZZZ.json"
    elif change == "no time zone":
        content["made_at"] = "2026-12-01T09:00:00"
    elif change == "public":
        del content["jwk"]["d"]
    else:
        content["jwk"] = OKPKey.generate_key("Ed448").as_dict(private=True)
    file.write_bytes(orjson.dumps(content))

    with pytest.raises(DamagedKey, match=file.name):
        folder.read(folder.names())


def test_a_folder_that_is_empty_or_away_refuses(folder: KeyFolder, keys: TurnKeys, clock: SettableClock) -> None:
    """A running gateway makes no key of its own accord: another may have them."""
    (name,) = folder.names()
    (folder.path / name).unlink()
    with pytest.raises(Unavailable):
        keys.signing()
    away = TurnKeys(KeyFolder(folder.path / "nowhere"), clock)
    with pytest.raises(Unavailable):
        away.find("key_1")


def test_a_key_that_is_dropped_while_the_folder_is_read_is_left_out(folder: KeyFolder) -> None:
    """A rotation may run in another process."""
    names = folder.names()
    assert [one.kid for one in folder.read(names | {"key_01ZZZZZZZZZZZZZZZZZZZZZZZZ.json"})] == [kid_in(folder)]


def test_what_a_killed_start_left_is_cleared_away(folder: KeyFolder, clock: SettableClock) -> None:
    """Half a key is not a key, and does not lie about for ever."""
    left = folder.path / ".key_01ZZZZZZZZZZZZZZZZZZZZZZZZ.abc"
    left.write_bytes(b"{")

    folder.rotate(clock.now())

    assert not left.exists()


# ── at once ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PROGRAM = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from gateway.identity.turn_keys import KeyFolder
folder = KeyFolder(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(10):
    getattr(folder, sys.argv[2])(datetime.now(UTC))
"""


@pytest.mark.parametrize(("what", "made"), [("ensure", 1), ("rotate", 20)])
def test_two_processes_at_once_leave_keys_that_can_all_be_read(tmp_path: Path, what: str, made: int) -> None:
    """Neither drops what the other signs with, and each key is later than the one before."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), what]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for one in running:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    codes = []
    for one in running:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=60)
        codes.append(one.returncode)

    folder = KeyFolder(tmp_path)
    found = folder.read(folder.names())
    assert codes == [0, 0]
    assert len(found) == made
    assert len({one.made_at for one in found}) == made
    assert [one.until is None for one in found] == [True] + [False] * (made - 1)
