"""Turns made-up people into people with sessions of every kind, each with marks in its title and its messages.

All of it is done with their own tokens over the API, as everybody does it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from gateway.leak_test.asgi import Answer, ask
from gateway.leak_test.cast import OURS
from gateway.leak_test.driver import in_path
from gateway.leak_test.files import plant_files
from gateway.leak_test.markers import BAIT, Sort
from gateway.leak_test.scratch import ACCOUNT, CHANNEL, Scratch, bearer, name_of
from gateway.leak_test.world import Person, PlantedMessage, PlantedSession

TEAM_ROOM = "team room"
GROUP_CHAT = "C1"


class CouldNotPlant(Exception):
    """The scratch gateway refused something that the test needs."""


async def plant(made: Scratch) -> None:
    """Everything, and then what ends somebody: a merge, a disabling. Raises CouldNotPlant."""
    planter = Planter(made)
    for tenant in made.world.documents:
        everybody = [one for one in made.world.people if one.tenant == tenant and one.plants]
        await planter.team_room(everybody)
        await asyncio.gather(*(planter.sessions_of(one, everybody) for one in everybody))
        await plant_files(made, planter.send, everybody)
    await planter.chat_of_a_channel()
    await planter.endings()


class Planter:
    """Opens sessions and says things in them."""

    def __init__(self, made: Scratch) -> None:
        self._made = made
        self._world = made.world
        self._count = 0  # of messages, so that it is known who was there when one was said

    async def send(self, who: Person, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """One request of theirs, which has to be done. Raises CouldNotPlant."""
        more = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
        sent = None if body is None else orjson.dumps(body)
        answer = await ask(self._made.app, method, path, (*bearer(who.secret), *more), sent)
        if answer.status >= 300:
            raise CouldNotPlant(f"{who.name}: {method} {path}: {answer.status} {answer.body.decode()}")
        return answer

    async def open(
        self,
        who: Person,
        what: str,
        agent: str,
        *,
        kind: str = "direct",
        parent: PlantedSession | None = None,
        people: tuple[Person, ...] = (),
        **more: object,
    ) -> PlantedSession:
        """A new session of theirs, with a marked title."""
        title = self._world.marks.make(Sort.TITLE, name_of(who), what, None)
        body: dict[str, object] = {"kind": kind, "title": f"{who.bait} {title.word}", **more}
        if parent is not None:
            body["parent"] = parent.key
        if people:
            body["participants"] = [one.id for one in people]
        answer = await self.send(who, "POST", f"/v1/agents/{agent}/sessions", body)
        shown: dict[str, Any] = orjson.loads(answer.body)
        session = PlantedSession(
            what=what,
            key=shown["key"],
            id=shown["id"],
            agent=agent,
            tenant=who.tenant,
            kind=kind,
            private=parent.private if parent is not None else kind == "direct",
            owner=who if parent is None else parent.root.owner,
            planted_for=who,
            people={one.id: self._count for one in (who, *people)},
            parent=parent,
            incognito=bool(more.get("incognito")) or (parent is not None and parent.incognito),
            sandboxed=bool(more.get("sandboxed")) or (parent is not None and parent.sandboxed),
        )
        self._mark(session, title)
        return session

    def _mark(self, session: PlantedSession, title: Any) -> None:
        """The title's mark, and one for that there is such a session at all."""
        marks, who = self._world.marks, session.planted_for
        session.title = marks.placed(title, session)
        marks.hashed(session.title, f"{who.bait} {title.word}")
        there = marks.make(Sort.SESSION, name_of(who), session.what, session)
        marks.named(there, session.key, session.id)
        session.there = there
        self._world.sessions.append(session)

    async def say(self, who: Person, session: PlantedSession) -> PlantedMessage:
        """A marked message."""
        self._count += 1
        message = PlantedMessage(session=session, number=self._count)
        mark = self._world.marks.make(Sort.MESSAGE, name_of(session.planted_for), session.what, message)
        message.mark = mark
        text = f"{BAIT} {session.planted_for.bait} {mark.word}"
        path = f"/v1/sessions/{in_path(session.key)}/messages"
        answer = await self.send(who, "POST", path, {"role": "user", "content": text})
        self._world.marks.hashed(mark, text)
        self._world.marks.named(mark, orjson.loads(answer.body)["id"])
        session.messages.append(message)
        return message

    async def team_room(self, everybody: list[Person]) -> None:
        """The group that all are in."""
        first, *others = everybody
        room = await self.open(first, TEAM_ROOM, "flight", kind="group", people=tuple(others))
        await asyncio.gather(*(self.say(one, room) for one in everybody[:3]))

    async def sessions_of(self, who: Person, everybody: list[Person]) -> None:
        """One of every kind. Whoever comes next in the list joins the group late."""
        home, other = who.home, who.other
        private = await self.open(who, "private session", home)
        child = await self.open(who, "child", home, kind="subagent", parent=private)
        await asyncio.gather(
            self._with_words(who, private),
            self._with_words(who, child),
            self._new(who, "child of the child", home, kind="subagent", parent=child),
            self._new(who, "child on another agent", other, kind="subagent", parent=private),
            self._new(who, "sandboxed child", home, kind="subagent", parent=private, sandboxed=True),
            self._new(who, "incognito session", home, incognito=True),
            self._new(who, "private session elsewhere", other),
            self._new(who, "named session", home, name="notes"),
            self._new(who, "cron session", home, kind="cron"),
            self._new(who, "channel session", home, kind="channel"),
            self._new(who, "spare session", home, kind="group"),
            self._group(who, everybody[(everybody.index(who) + 1) % len(everybody)]),
            self._archived(who),
            self._emptied(who),
            self._removed(who),
        )

    async def _with_words(self, who: Person, session: PlantedSession) -> None:
        await self.say(who, session)

    async def _new(self, who: Person, what: str, agent: str, **more: Any) -> PlantedSession:
        session = await self.open(who, what, agent, **more)
        await self.say(who, session)
        return session

    async def _group(self, who: Person, late: Person) -> None:
        """What was said before `late` came is not for them."""
        group = await self.open(who, "group", who.home, kind="group")
        await self.say(who, group)
        path = f"/v1/sessions/{in_path(group.key)}"
        await self.send(who, "PATCH", path, {"participants": [who.id, late.id]})
        group.people[late.id] = self._count
        await self.say(who, group)
        await self._new(who, "child of the group", who.home, kind="subagent", parent=group)

    async def _archived(self, who: Person) -> None:
        old = await self._new(who, "archived session", who.home, name="old")
        await self.send(who, "POST", f"/v1/sessions/{in_path(old.key)}/archive")

    async def _emptied(self, who: Person) -> None:
        again = await self._new(who, "reset session", who.home, name="again")
        await self.send(who, "POST", f"/v1/sessions/{in_path(again.key)}/reset")
        again.messages[0].gone = True
        await self.say(who, again)

    async def _removed(self, who: Person) -> None:
        gone = await self._new(who, "deleted session", who.home, name="gone")
        await self.send(who, "DELETE", f"/v1/sessions/{in_path(gone.key)}")
        gone.gone = True

    async def chat_of_a_channel(self) -> None:
        """A chat that the connector brings: alice, who is linked, speaks in it."""
        world = self._world
        connector, alice, olga = (world.person(name, OURS) for name in ("connector", "alice", "olga"))
        sender = {"channel": CHANNEL, "account": ACCOUNT, "sender": "U-alice"}
        await self.send(olga, "POST", f"/v1/admin/people/{alice.id}/identities", sender)
        message = PlantedMessage(session=None, number=self._count + 1)  # type: ignore[arg-type]  # set below
        mark = world.marks.make(Sort.MESSAGE, "alice", "chat of a channel", message)
        text = f"{BAIT} {alice.bait} {mark.word}"
        answer = await self.send(connector, "POST", f"/v1/connectors/{CHANNEL}/turns", turn("U-alice", text))
        shown = orjson.loads(answer.body)["session"]
        chat = PlantedSession(
            what="chat of a channel",
            key=shown["key"],
            id=shown["id"],
            agent="flight",
            tenant=OURS,
            kind="group",
            private=False,
            owner=connector,
            planted_for=alice,
            people={connector.id: 0, alice.id: self._count},
        )
        self._count += 1
        message.session, message.mark = chat, mark
        chat.messages.append(message)
        chat.there = world.marks.make(Sort.SESSION, "alice", chat.what, chat)
        world.marks.named(chat.there, chat.key, chat.id)
        world.sessions.append(chat)
        world.chat = chat

    async def endings(self) -> None:
        """mona is made one with mia, dora may not come in any more."""
        world = self._world
        olga, mia, mona, dora = (world.person(name, OURS) for name in ("olga", "mia", "mona", "dora"))
        await self.send(olga, "POST", f"/v1/admin/people/{mona.id}/merge", {"into": mia.id})
        await self.send(olga, "DELETE", f"/v1/admin/people/{dora.id}")
        mona.active = dora.active = False
        mia.aliases = (mona.id,)
        for session in world.sessions:
            if session.owner is mona:
                session.owner = mia
            if mona.id in session.people:
                joined = session.people.pop(mona.id)
                session.people[mia.id] = min(joined, session.people.get(mia.id, joined))


def turn(sender: str, text: str | None, kind: str = "group", chat: str = GROUP_CHAT) -> dict[str, object]:
    """What a connector brings of somebody."""
    said = {} if text is None else {"text": text}
    return {"account": ACCOUNT, "sender": sender, "chat": {"kind": kind, "id": chat}, **said}
