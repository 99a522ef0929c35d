"""What a person gets to read: messages, one memory file, the context of a turn (design section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from tests.oracle.decide import decide, decide_inside
from tests.oracle.facts import (
    head,
    is_private,
    people_count,
    person_of_path,
    personal_owner_of,
    resource_of,
    session_in,
    takes_part,
    whose_of,
)
from tests.oracle.world import File, Message, OnFile, OnSession, Request, Session, World

PERSONAL_LIMIT = 4_000  # UTF-16 units


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A candidate file of a turn. Where more than one reason to leave it out holds, any of them may be given."""

    path: str
    kind: str
    included: bool
    reasons: frozenset[str]
    text: str | None  # of what is in


def readable_messages(
    world: World, tenant: str, person: str, origin: str | None, session: str, action: str = "history"
) -> list[Message] | None:
    """The messages a person reads there, oldest first; None where they are refused.

    "who joins later reads from their joining on"; a reset starts a new incarnation, and only that one is read.
    An incognito session's owner who asks for it from outside any session asks from inside it.
    """
    there = session_in(world, session)
    if origin is None and there.incognito and whose_of(world, there, person) == "own":
        origin = session
    request = Request(tenant=tenant, who=person, action=action, target=OnSession(session), origin=origin)
    if not decide(world, request).allowed:
        return None
    joined = [one.joined_after for one in takes_part(world, there, person)]
    if not joined and whose_of(world, there, person) == "own" and not is_private(world, there):
        return []  # the owner of a shared session takes part in it; one who does not fails closed
    after = min(joined, default=0)
    found = [
        message
        for message in world.messages
        if message.session == session and message.incarnation == there.incarnation and message.number > after
    ]
    return sorted(found, key=lambda message: message.number)


def file_at(world: World, tenant: str, agent: str, path: str) -> File | None:
    """The file in the workspace, if it is there."""
    for file in world.files:
        if (file.tenant, file.agent, file.path) == (tenant, agent, path):
            return file
    return None


def memory_get(world: World, tenant: str, person: str, session: str, path: str) -> str | None:
    """What `memory_get` gives inside a session, without the last line's end; None where it is missing or refused
    ("denied looks like missing").

    "Names and arguments are OpenClaw's": what the tool reaches is MEMORY.md, USER.md, DREAMS.md and `memory/`, and with
    us the same below `users/`; not the rules (reference, openclaw-memory 1.7).
    """
    agent = session_in(world, session).agent
    if resource_of(path) in (None, "memory/rules"):
        return None
    target = OnFile(tenant, agent, path)
    request = Request(tenant=tenant, who=person, action="get", target=target, origin=session)
    if not decide_inside(world, request).allowed:
        return None
    file = file_at(world, tenant, agent, path)
    return None if file is None else file.text.removesuffix("\n")


def candidates(person: str, today: date) -> list[tuple[str, str]]:
    """ "Files, in this order" """
    yesterday = today - timedelta(days=1)
    return [
        ("AGENTS.md", "rules"),
        ("SOUL.md", "rules"),
        ("IDENTITY.md", "rules"),
        ("USER.md", "shared"),
        (f"users/{person}/USER.md", "personal"),
        ("MEMORY.md", "longterm"),
        (f"memory/{today}.md", "daily"),
        (f"memory/{yesterday}.md", "daily"),
        (f"users/{person}/MEMORY.md", "personal_longterm"),
        (f"users/{person}/memory/{today}.md", "personal_daily"),
        (f"users/{person}/memory/{yesterday}.md", "personal_daily"),
    ]


def context(world: World, tenant: str, person: str, session: str, today: date) -> list[Entry] | None:
    """Every candidate file of a turn, in or out and why; None where the person may not enter the session.

    Sizes stay under the budgets of a shared file and of the whole; those are not this oracle's subject.
    """
    entry = Request(tenant=tenant, who=person, action="enter", target=OnSession(session), origin=session)
    if not decide(world, entry).allowed:
        return None
    there = session_in(world, session)
    return [consider(world, there, person, path, kind) for path, kind in candidates(person, today)]


def consider(world: World, session: Session, person: str, path: str, kind: str) -> Entry:
    """One candidate: first what bars it, then whether it is there and fits."""
    barred = bars(world, session, person, path, kind)
    if barred:
        return Entry(path=path, kind=kind, included=False, reasons=frozenset(barred), text=None)
    file = file_at(world, session.tenant, session.agent, path)
    if file is None:
        return Entry(path=path, kind=kind, included=False, reasons=frozenset({"missing"}), text=None)
    if kind == "personal" and len(file.text.encode("utf-16-le")) // 2 > PERSONAL_LIMIT:
        return Entry(path=path, kind=kind, included=False, reasons=frozenset({"too_large"}), text=None)
    return Entry(path=path, kind=kind, included=True, reasons=frozenset(), text=file.text)


def bars(world: World, session: Session, person: str, path: str, kind: str) -> set[str]:
    """Every reason that keeps a candidate out, whether it is there or not; the table of section 6, row by row."""
    found = kind_bars(world, session, path, kind)
    if person_of_path(path) is not None and personal_owner_of(world, session) != head(world, session.tenant, person):
        found |= {"not_permitted"}  # "In anybody else's turn the manifest says `not_permitted`."
    if kind == "personal" and people_count(world, session.tenant) < 2:
        found |= {"single_person_tenant"}
    if not found:
        load = Request(
            tenant=session.tenant,
            who=person,
            action="load",
            target=OnFile(session.tenant, session.agent, path),
            origin=session.id,
        )
        if not decide(world, load).allowed:
            found |= {"not_permitted"}
            if kind not in ("rules", "shared") and not is_private(world, session):
                found |= {"group_session"}
    return found


def kind_bars(world: World, session: Session, path: str, kind: str) -> set[str]:
    """What the kind of session alone keeps out."""
    if session.kind == "subagent":  # "subagent | AGENTS.md"
        if path == "AGENTS.md":
            return set()
        return {"session_kind"} if is_private(world, session) else {"session_kind", "group_session"}
    if session.kind == "cron":  # "cron | rules and shared USER.md"
        return set() if kind in ("rules", "shared") else {"session_kind", "group_session"}
    if session.kind == "direct" and is_private(world, session):  # "direct, private | all of it"
        return set()
    # "group, channel, unknown | rules and shared USER.md. Never root MEMORY.md; no personal file and no daily note
    # unless a policy row allows it"
    return {"group_session"} if kind == "longterm" else set()
