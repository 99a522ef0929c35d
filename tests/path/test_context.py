"""What each turn loads, over HTTP: the table of design section 6, file by file, with the reason of what stays out."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import httpx2
import pytest

from gateway.keys import new_id
from gateway.model import SessionId
from gateway.policy.shipped import shipped
from gateway.workspace.paths import daily_path, instructions_path, longterm_path
from tests.clock import SettableClock
from tests.house import House

RULES = ("AGENTS.md", "SOUL.md", "IDENTITY.md")
SHARED = "USER.md"
LONGTERM = "MEMORY.md"
KINDS = ("direct", "group", "channel", "subagent", "cron")


@dataclass(frozen=True)
class Names:
    """The candidate files of one person on one day."""

    personal: str
    today: str
    yesterday: str
    own_longterm: str
    own_today: str
    own_yesterday: str

    @property
    def all(self) -> list[str]:
        """In the order of design section 6."""
        team = [*RULES, SHARED, self.personal, LONGTERM, self.today, self.yesterday]
        return [*team, self.own_longterm, self.own_today, self.own_yesterday]

    @property
    def personal_ones(self) -> set[str]:
        """Those that are the person's alone."""
        return {self.personal, self.own_longterm, self.own_today, self.own_yesterday}


def names(home: House, who: str) -> Names:
    """On 2026-12-01, which is today until the clock is moved."""
    me = home.id(who)
    day = home.gateway.clock.now().date()
    before = day.replace(day=day.day - 1) if day.day > 1 else day.replace(month=day.month - 1, day=30)
    return Names(
        instructions_path(me),
        daily_path(day, None),
        daily_path(before, None),
        longterm_path(me),
        daily_path(day, me),
        daily_path(before, me),
    )


def fill(home: House, *people: str) -> None:
    """Every candidate file of these people holds `<who>:<path>`."""
    for who in people:
        for path in names(home, who).all:
            home.workspace().replace(path, f"{who}:{path}\n")


async def load(home: House, who: str, session: str, **turn: str) -> httpx2.Response:
    """The context of a turn."""
    answer = await home.post(who, f"/v1/sessions/{session}/context", {"turn": turn} if turn else {})
    assert answer.status_code == 200, answer.text
    return answer


def included(answer: httpx2.Response) -> list[str]:
    """Paths of what is in, in order."""
    return [one["path"] for one in answer.json()["manifest"] if one["included"]]


def reasons(answer: httpx2.Response) -> dict[str, str]:
    """Path to reason, of what is out."""
    return {one["path"]: one["reason"] for one in answer.json()["manifest"] if not one["included"]}


async def opened(home: House, who: str, kind: str) -> str:
    """A session of `kind` that `who` owns, with bob in it where there can be anybody else."""
    if kind == "subagent":
        return await home.open(who, kind, parent=await home.open(who))
    people = [home.id("bob")] if kind in ("group", "channel", "cron") else []
    return await home.open(who, kind, participants=people)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_owners_turn_loads_what_the_table_says(home: House, kind: str) -> None:
    """Design section 6, the table; what is out carries a reason and neither hash nor size."""
    fill(home, "alice")
    mine = names(home, "alice")

    answer = await load(home, "alice", await opened(home, "alice", kind))

    expected = {
        "direct": mine.all,
        "group": [*RULES, SHARED],
        "channel": [*RULES, SHARED],
        "cron": [*RULES, SHARED],
        "subagent": ["AGENTS.md"],
    }[kind]
    assert included(answer) == expected
    assert [one["path"] for one in answer.json()["manifest"]] == mine.all
    assert set(reasons(answer).values()) <= {"session_kind" if kind in ("subagent", "cron") else "group_session"}
    for one in answer.json()["manifest"]:
        assert (one["sha256"] is None) == (one["units"] is None) == (not one["included"])
    for path in set(mine.all) - set(expected):
        assert f"alice:{path}" not in answer.text
    order = [answer.json()["text"].index(f"alice:{path}") for path in expected]
    assert order == sorted(order)


@pytest.mark.parametrize("kind", ["group", "channel", "cron"])
async def test_a_turn_of_somebody_else_loads_no_personal_file_of_anybody(home: House, kind: str) -> None:
    """Design section 6: personal files only in the owner's turns; the manifest names no other person's files at all."""
    fill(home, "alice", "bob")
    session = await opened(home, "alice", kind)

    answer = await load(home, "bob", session)

    assert included(answer) == [*RULES, SHARED]
    assert {reasons(answer)[path] for path in names(home, "bob").personal_ones} == {
        "not_permitted" if kind != "cron" else "session_kind"
    }
    assert home.id("alice") not in answer.text
    assert "alice:users" not in answer.text


async def test_a_row_lets_a_group_load_notes_and_the_owners_files_but_never_root_memory(home: House) -> None:
    """Design section 6: "unless a policy row allows it"; section 7: root MEMORY.md is no row's to give."""
    fill(home, "alice", "bob")
    await home.publish(shipped("default.csv") + "\np, role:member, *, *, all, any, *, *, allow\n")
    group = await opened(home, "alice", "group")
    cron = await opened(home, "alice", "cron")

    owner, other = await load(home, "alice", group), await load(home, "bob", group)
    background = await load(home, "alice", cron)

    mine, theirs = names(home, "alice"), names(home, "bob")
    assert included(owner) == [path for path in mine.all if path != LONGTERM]
    assert included(other) == [*RULES, SHARED, theirs.today, theirs.yesterday]
    assert {reasons(other)[path] for path in theirs.personal_ones} == {"not_permitted"}
    assert reasons(owner)[LONGTERM] == reasons(other)[LONGTERM] == "group_session"
    assert included(background) == [*RULES, SHARED]


@pytest.mark.parametrize(
    ("kind", "turn", "loads"),
    [
        ("direct", "direct", "all"),
        ("direct", "group", "shared"),
        ("direct", "channel", "shared"),
        ("direct", "cron", "shared"),
        ("direct", "no such kind", "shared"),
        ("direct", "DIRECT", "shared"),
        ("direct", "subagent", "agents"),
        ("group", "direct", "shared"),
        ("group", "subagent", "agents"),
        ("channel", "direct", "shared"),
        ("cron", "direct", "shared"),
        ("subagent", "direct", "agents"),
        ("subagent", "group", "agents"),
        ("subagent", "no such kind", "agents"),
    ],
)
async def test_what_a_turn_says_of_its_kind_narrows_and_never_widens(
    home: House, kind: str, turn: str, loads: str
) -> None:
    """Design section 6: the current turn's kind beats stored metadata, an unknown one counts as a group."""
    fill(home, "alice")
    expected = {"all": names(home, "alice").all, "shared": [*RULES, SHARED], "agents": ["AGENTS.md"]}[loads]

    answer = await load(home, "alice", await opened(home, "alice", kind), kind=turn)

    assert included(answer) == expected


async def test_a_child_of_a_group_is_shared_and_a_child_of_a_private_session_loads_the_rules_alone(home: House) -> None:
    """Design section 6: so a group can't send a child for what it may not read itself."""
    fill(home, "alice")
    everything = shipped("default.csv") + "\np, role:member, *, *, all, any, *, *, allow\n"
    await home.publish(everything)
    private = await home.open("alice", "subagent", parent=await home.open("alice"))
    shared = await home.open("alice", "subagent", parent=await opened(home, "alice", "group"))

    assert included(await load(home, "alice", private)) == ["AGENTS.md"]
    assert included(await load(home, "alice", shared)) == ["AGENTS.md"]
    inside = await home.tool("alice", private, "memory_get", path=LONGTERM)
    outside = await home.tool("alice", shared, "memory_get", path=LONGTERM)
    assert inside.json()["result"]["status"] == "ok"
    assert outside.json()["result"]["status"] == "not_found"


async def test_personal_instructions_wait_until_there_are_two_people(home: House) -> None:
    """Design section 6: only when the tenant has two or more unmerged people; services and the disabled don't count."""
    fill(home, "alice")
    session = await home.open("alice")
    mine = names(home, "alice")
    assert mine.personal in included(await load(home, "alice", session))

    for name in home.people:
        if name != "alice":
            await home.gateway.stores.identities.change_profile(
                home.tenant, home.id(name), name=None, emails=None, disabled=True
            )
    await home.add("robot", "member", kind="service")
    alone = await load(home, "alice", session)
    await home.add("frank", "member")
    together = await load(home, "alice", session)

    assert reasons(alone) == {mine.personal: "single_person_tenant"}
    assert mine.personal in included(together)


async def test_a_service_gets_no_personal_file_and_its_creator_does_where_it_owns(home: House) -> None:
    """Design section 6: the creator's turn counts where the owner is not a person."""
    await home.publish(shipped("default.csv") + "\np, role:member, *, *, all, any, *, *, allow\n")
    fill(home, "alice", "bob")
    robot = await home.add("robot", "member", kind="service")
    group = await opened(home, "alice", "group")
    answer = await home.send("alice", "PUT", f"/v1/sessions/{group}/owner", {"profile": robot.id})
    assert answer.status_code == 200, answer.text

    creators, others = await load(home, "alice", group), await load(home, "bob", group)
    services = await load(home, "robot", group)

    assert names(home, "alice").personal in included(creators)
    assert reasons(others)[names(home, "bob").personal] == "not_permitted"
    assert {one for one in reasons(services) if one.startswith("users/")} == names(home, "robot").personal_ones
    # With a person as owner the creator is anybody else.
    await home.send("alice", "PUT", f"/v1/sessions/{group}/owner", {"profile": home.id("bob")})
    assert reasons(await load(home, "alice", group))[names(home, "alice").personal] == "not_permitted"
    assert names(home, "bob").personal in included(await load(home, "bob", group))


async def test_a_child_belongs_to_whoever_made_its_root_where_a_service_owns_it(home: House) -> None:
    """Design section 6: owner and participants of a child are those of its tree's root, and so is the creator."""
    await home.publish(shipped("default.csv") + "\np, role:member, *, *, all, any, *, *, allow\n")
    fill(home, "alice", "bob")
    robot = await home.add("robot", "member", kind="service")
    group = await opened(home, "alice", "group")
    root = await home.gateway.stores.sessions.find(home.tenant, group)
    assert root is not None
    # No route makes a child of this kind; a store that was filled otherwise may hold one.
    child = replace(
        root.session,
        id=SessionId(new_id("ses", home.gateway.clock.now())),
        key="agent:flight:web:group:child",
        creator=home.id("bob"),
        parent=root.session.id,
        parent_key=root.session.key,
    )
    child = replace(child, path=f"{root.session.path}{child.id}/")
    await home.gateway.stores.sessions.create(child, ())
    await home.send("alice", "PUT", f"/v1/sessions/{group}/owner", {"profile": robot.id})

    root_creators, child_creators = await load(home, "alice", child.key), await load(home, "bob", child.key)

    assert names(home, "alice").personal in included(root_creators)
    assert reasons(child_creators)[names(home, "bob").personal] == "not_permitted"


async def test_what_is_missing_unsafe_or_too_large_is_named_and_stops_nothing(home: House) -> None:
    """Design section 6: each with its reason, and a warning where somebody has to mend something."""
    session = await home.open("alice")
    mine = names(home, "alice")
    fill(home, "alice")
    folder = home.workspace().root / "flight"
    outside = home.gateway.folders.root / "outside.md"
    outside.write_text("secret of the machine", encoding="utf-8")
    (folder / "SOUL.md").unlink()
    (folder / "SOUL.md").symlink_to(outside)
    (folder / "IDENTITY.md").unlink()
    os.link(outside, folder / "IDENTITY.md")
    (folder / mine.today).write_bytes(b"\xff\xfe not text")
    (folder / mine.yesterday).unlink()
    (folder / mine.own_today).unlink()
    os.mkfifo(folder / mine.own_today)
    (folder / mine.personal).write_text("x" * 4001, encoding="utf-8")

    answer = await load(home, "alice", session)

    assert reasons(answer) == {
        "SOUL.md": "unsafe_file",
        "IDENTITY.md": "unsafe_file",
        mine.today: "unsafe_file",
        mine.yesterday: "missing",
        mine.own_today: "unsafe_file",
        mine.personal: "too_large",
    }
    assert "secret of the machine" not in answer.text
    assert len(answer.json()["warnings"]) == 5
    (folder / mine.personal).write_text("x" * 4000, encoding="utf-8")
    assert mine.personal in included(await load(home, "alice", session))


async def test_a_long_file_is_cut_and_the_last_files_give_way_first(home: House) -> None:
    """Design section 6: 20,000 units a file with a marker, 60,000 in all."""
    session = await home.open("alice")
    mine = names(home, "alice")
    fill(home, "alice")
    for path in ("AGENTS.md", SHARED, LONGTERM):
        home.workspace().replace(path, f"begin {path} " + "x" * 25_000 + " end")

    answer = await load(home, "alice", session)

    by_path = {one["path"]: one for one in answer.json()["manifest"]}
    assert by_path["AGENTS.md"]["truncated"]
    assert "begin AGENTS.md" in answer.text
    assert "the middle of AGENTS.md was cut here" in answer.text
    assert reasons(answer)[mine.own_yesterday] == "budget"
    assert LONGTERM not in included(answer)
    assert mine.personal in included(answer)
    assert len(answer.json()["text"]) <= 60_000


@pytest.mark.parametrize("way", ["no text", "two names", "a folder"])
async def test_where_root_memory_cannot_be_read_a_group_gets_the_rules_alone(home: House, way: str) -> None:
    """Design section 7, invariants: what can't be compared with root MEMORY.md could be it; the rules are no secret."""
    fill(home, "alice")
    root = home.workspace().root / "flight"
    private, group = await home.open("alice"), await opened(home, "alice", "group")
    assert included(await load(home, "alice", group)) == [*RULES, SHARED]

    if way == "no text":
        (root / LONGTERM).write_bytes(b"Decided\xff")
    elif way == "two names":
        (root / "second").hardlink_to(root / LONGTERM)
    else:
        (root / LONGTERM).unlink()
        (root / LONGTERM).mkdir()

    assert included(await load(home, "alice", group)) == [*RULES]
    assert reasons(await load(home, "alice", group))[SHARED] == "group_session"
    assert SHARED in included(await load(home, "alice", private))
    inside = await home.tool("alice", private, "memory_get", path=SHARED)
    outside = await home.tool("alice", group, "memory_get", path=SHARED)
    assert inside.json()["result"]["status"] == "ok"
    assert outside.json()["result"]["status"] == "not_found"


@pytest.mark.parametrize("way", ["copied", "linked", "hard linked", "moved onto a link"])
async def test_a_group_never_gets_root_memory_under_another_name(home: House, way: str) -> None:
    """Design section 7, invariants; heypinchy/pinchy#369: whatever the file is called, linked or moved to."""
    await home.publish(shipped("default.csv") + "\np, role:member, *, *, all, any, *, *, allow\n")
    fill(home, "alice")
    folder = home.workspace().root / "flight"
    secret = "the runway code is 4711"
    (folder / LONGTERM).write_text(secret, encoding="utf-8")
    group = await opened(home, "alice", "group")
    private = await home.open("alice")
    mine = names(home, "alice")
    aliases = ["SOUL.md", SHARED, mine.today, mine.personal]
    if way == "moved onto a link":
        (folder / LONGTERM).rename(folder / SHARED)
        (folder / LONGTERM).symlink_to(folder / SHARED)
        aliases = [SHARED]
    for alias in aliases:
        if way == "moved onto a link":
            continue
        (folder / alias).unlink()
        if way == "copied":
            (folder / alias).write_text(secret, encoding="utf-8")
        elif way == "linked":
            (folder / alias).symlink_to(folder / LONGTERM)
        else:
            os.link(folder / LONGTERM, folder / alias)

    answer = await load(home, "alice", group)

    assert secret not in answer.text
    assert set(aliases).isdisjoint(included(answer))
    for alias in aliases:
        if alias == "SOUL.md":  # a rule is no memory file
            continue
        read = await home.tool("alice", group, "memory_get", path=alias)
        assert secret not in read.text, (alias, read.text)
    assert "AGENTS.md" in included(answer)
    if way == "copied":  # the same file is the person's to read where nobody else listens
        assert secret in (await home.tool("alice", private, "memory_get", path=SHARED)).text


SPELLINGS = [
    "MEMORY.md",
    "memory.md",
    "Memory.MD",
    "./MEMORY.md",
    "memory/../MEMORY.md",
    "memory/MEMORY.md",
    "/MEMORY.md",
    "//MEMORY.md",
    "MEMORY.md/",
    "%4dEMORY.md",
    "%4DEMORY.md",
    "MEMORY.md\0",
    "MEMORY.md\0.txt",
    "memory\\..\\MEMORY.md",
    ".\\MEMORY.md",
    "ＭＥＭＯＲＹ.md",  # full width, which NFKC folds
    "MEMORY\u200b.md",
    "MEMORY.md ",
    "MEMORY.md.",
    "users/../MEMORY.md",
    "../flight/MEMORY.md",
    "file://MEMORY.md",
]


async def test_no_spelling_of_root_memory_opens_it_from_a_group(home: House) -> None:
    """Design section 7: any alias of the file; openclaw#119198, #109009. In private its own name alone opens it."""
    secret = "the runway code is 4711"
    home.workspace().replace(LONGTERM, secret)
    group, private = await opened(home, "alice", "group"), await home.open("alice")
    absent = (await home.tool("alice", group, "memory_get", path="memory/1999-01-01.md")).json()

    for path in SPELLINGS:
        shared = await home.tool("alice", group, "memory_get", path=path)
        own = await home.tool("alice", private, "memory_get", path=path)
        assert shared.status_code == 200, (path, shared.text)
        assert {**shared.json()["result"], "path": ""} == {**absent["result"], "path": ""}, path
        assert (secret in own.text) == (path == LONGTERM), path
        assert secret not in shared.text


async def test_today_is_the_agents_day(home: House, clock: SettableClock) -> None:
    """Design section 6: the agent's time zone; the day changes while a session goes on."""
    fill(home, "alice")
    session = await home.open("alice")
    before = names(home, "alice")
    clock.advance(86_400)
    await home.gateway.epochs.poll()

    answer = await load(home, "alice", session)

    assert before.today in included(answer)
    assert before.yesterday not in answer.text
    assert reasons(answer)["memory/2026-12-02.md"] == "missing"


async def test_a_folder_that_is_gone_refuses_and_is_never_an_empty_context(home: House) -> None:
    """Design section 12: an outage refuses; a volume that is not mounted must not look like an agent without memory."""
    session = await home.open("alice")
    folder = home.workspace().root / "flight"
    folder.rename(folder.with_name("away"))

    for path, body in (
        ("/context", {}),
        ("/tools/memory_get", {"path": SHARED}),
        ("/tools/personal_instructions", {"action": "get"}),
        ("/tools/memory_append", {"scope": "shared", "text": "x"}),
    ):
        answer = await home.post("alice", f"/v1/sessions/{session}{path}", body)
        assert answer.status_code == 503, (path, answer.text)
        assert answer.headers["retry-after"]
    assert not folder.exists()
    folder.with_name("away").rename(folder)
    assert included(await load(home, "alice", session))
