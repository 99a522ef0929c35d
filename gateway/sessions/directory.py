"""Turns a session's key or id into its facts, from memory where nothing has changed since they were read.

Every change of a session goes through here. An answer that was read while a change ran is used but not kept, so that a
request in flight can't put the old facts back (design section 7, freshness). A change whose caller gives up goes on in
the store; it is forgotten about when it really ends.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from gateway.keys import LONGEST_WORD, storage_key
from gateway.model import Session, SessionFacts, SessionId, TenantId
from gateway.ports import Sessions

ChangeT = TypeVar("ChangeT")


class SessionDirectory:
    """A bounded memory of session facts in front of the store, of sessions that are not there too."""

    def __init__(self, store: Sessions, *, capacity: int = 20_000) -> None:
        self._store = store
        self._capacity = capacity
        self._known: OrderedDict[str, SessionFacts | None] = OrderedDict()
        self._of_root: defaultdict[SessionId, set[str]] = defaultdict(set)
        self._generation = 0
        self._changing: set[asyncio.Future[Any]] = set()  # the loop itself would not keep them

    @property
    def store(self) -> Sessions:
        """The store, for lists, which are never answered from memory."""
        return self._store

    async def find(self, tenant: TenantId, reference: str) -> SessionFacts | None:
        """The session and its root's participants, by key or id."""
        if len(reference) > LONGEST_WORD:
            return None
        key = storage_key(tenant, reference)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        generation = self._generation
        facts = await self._store.find(tenant, reference)
        if generation == self._generation:
            self._keep(key, facts)
        return facts

    async def create(self, session: Session, creating: Awaitable[SessionFacts]) -> SessionFacts:
        """Runs the creation of `session`, to its end; whoever was told that the key is free is told anew. Where it is
        taken, somebody was quicker: that is looked up anew too."""

        def forget() -> None:
            self._generation += 1
            for reference in (session.key, session.id):
                self._drop(storage_key(session.tenant, reference))

        return await self._to_the_end(creating, forget)

    async def change(self, session: Session, changing: Awaitable[ChangeT]) -> ChangeT:
        """Runs a change of a session, to its end; what is known of its whole tree is forgotten before and after."""
        self.forget_tree(session.root)
        return await self._to_the_end(changing, lambda: self.forget_tree(session.root))

    def spoken_in(self, session: Session, at: datetime) -> None:
        """A message was written: nothing about the session changes but when that was last."""
        self._generation += 1
        for reference in (session.key, session.id):
            key = storage_key(session.tenant, reference)
            facts = self._known.get(key)
            if facts is not None:
                self._known[key] = replace(facts, session=replace(facts.session, last_message_at=at))

    def forget_tree(self, root: SessionId) -> None:
        """Forgets a root and all below it; what is being read right now is not kept."""
        self._generation += 1
        for key in self._of_root.pop(root, ()):
            self._known.pop(key, None)

    def forget(self) -> None:
        """Forgets everything: another process has written to the store."""
        self._generation += 1
        self._known.clear()
        self._of_root.clear()

    async def _to_the_end(self, changing: Awaitable[ChangeT], forget: Callable[[], None]) -> ChangeT:
        """What `changing` gives. A caller that is cancelled ends neither it nor the forgetting once it is done."""

        def ended(change: asyncio.Future[ChangeT]) -> None:
            self._changing.discard(change)
            if not change.cancelled():
                change.exception()  # read, for where nobody is there any more to be told
            forget()

        change = asyncio.ensure_future(changing)
        self._changing.add(change)
        change.add_done_callback(ended)  # before the shield's own, so that nobody is answered before it
        return await asyncio.shield(change)

    def _keep(self, key: str, facts: SessionFacts | None) -> None:
        self._known[key] = facts
        if facts is not None:
            self._of_root[facts.session.root].add(key)
        if len(self._known) > self._capacity:
            self._drop(next(iter(self._known)))

    def _drop(self, key: str) -> None:
        facts = self._known.pop(key, None)
        if facts is not None:
            keys = self._of_root[facts.session.root]
            keys.discard(key)
            if not keys:
                del self._of_root[facts.session.root]
