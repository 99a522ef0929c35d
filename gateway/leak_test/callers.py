"""Turns people into everybody who asks: with their token, with a narrower one, with a turn token, with none."""

from __future__ import annotations

import orjson

from gateway.leak_test.asgi import ask
from gateway.leak_test.cast import OURS
from gateway.leak_test.driver import in_path
from gateway.leak_test.scratch import Scratch, another_token, bearer, caller_of, name_of
from gateway.leak_test.world import Caller, Person, PlantedSession


async def callers_of(made: Scratch) -> list[Caller]:
    """Everybody, each with a label of their own. Before the document is in force, so that the tokens can be made."""
    world = made.world
    alice, mona, decider = (world.person(name, OURS) for name in ("alice", "mona", "decider"))
    found = [caller_of(person) for person in world.people if person is not mona]
    found.append(caller_of(mona, "mona (merged into mia)"))
    for scope in ("memory", "session", "gateway"):
        secret, _ = await another_token(made, alice, frozenset({scope}), f"{scope} alone")
        label = f"alice (a token for {scope})"
        found.append(Caller(label=label, person=alice, headers=bearer(secret), scopes=frozenset({scope})))
    secret, _ = await another_token(made, decider, frozenset({"decide"}), "decide alone")
    label = "decider (a token for decide)"
    found.append(Caller(label=label, person=decider, headers=bearer(secret), scopes=frozenset({"decide"})))
    found.append(await _runtime(made, alice))
    guest = Person(name="guest", tenant=OURS, id="gst_", kind="guest", roles=(("guest", "*"),), plants=False)
    connector = world.person("connector", OURS)
    found.append(Caller(label="guest", person=guest, headers=bearer(connector.secret), place=world.chat))
    found.append(Caller(label="nobody", person=None))
    found.append(Caller(label="a made-up token", person=None, headers=bearer("gwp_" + "0" * 49)))
    return found


async def _runtime(made: Scratch, person: Person) -> Caller:
    """The agent's runtime, with a turn token for somebody's private session."""
    session = next(one for one in made.world.sessions if _is_private_of(one, person))
    path = f"/v1/sessions/{in_path(session.key)}/context"
    answer = await ask(made.app, "POST", path, bearer(person.secret), b'{"turn_token": true}')
    token = orjson.loads(answer.body)["turn_token"].encode()
    label = f"the runtime of {name_of(person)}'s turn"
    return Caller(label=label, person=person, headers=((b"gateway-turn-token", token),), bound=session)


def _is_private_of(session: PlantedSession, person: Person) -> bool:
    return session.planted_for is person and session.what == "private session"
