"""Turns a policy document into made-up people: one for each role and each person that it names.

And those who are always worth asking as: somebody merged, somebody disabled, services, a guest, another organisation.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.leak_test.world import Person
from gateway.policy.documents import Document

OURS = "scratch"
OTHERS = "elsewhere"  # another organisation in the same gateway, under the same document
FEWEST = 10
_MEMBERS = ("alice", "bob")
_KNOWN = {"supervisor": "dana", "admin": "erin", "auditor": "audrey", "owner": "olga"}
_OF_NO_PERSON = frozenset({"member", "guest", "connector", "decider", *_KNOWN})
_MORE = ("frank", "grace", "heidi", "ivan", "judy", "mallory", "niaj", "peggy", "rupert", "sybil")


def agents_of(document: Document) -> tuple[str, ...]:
    """The agents that the document names, and two that are always there."""
    named = sorted({row.agent for row in document.rows} - {"*", "flight", "hotel"})
    return ("flight", "hotel", *named)


def cast_of(document: Document, people: int) -> list[Person]:
    """Everybody, without their ids (but for those whom the document names): at least `people` of them with sessions."""
    agents = agents_of(document)
    found = [*_ours(document, agents), *_elsewhere(agents)]
    planting = sum(one.plants for one in found)
    return [*found, *_members(max(0, people - planting), agents)]


def _ours(document: Document, agents: tuple[str, ...]) -> Iterator[Person]:
    for name in _MEMBERS:
        yield _person(name, agents, ("member", "*"))
    for number, one in enumerate(_named(document)):
        yield _person("carol" if number == 0 else f"carol-{number + 1}", agents, ("member", "*"), id=one)
    for role, name in _KNOWN.items():
        yield _person(name, agents, (role, "*"))
    for role in _other_roles(document):
        yield from _holder(role, document, agents)
    yield _person("agnes", agents, ("member", agents[0]))  # a role on one agent alone
    yield _person("sue", agents, ("supervisor", agents[1]), ("member", "*"))
    yield _person("mia", agents, ("member", "*"))
    yield _person("mona", agents, ("member", "*"))  # is merged into mia
    yield _person("dora", agents, ("member", "*"))  # is disabled
    yield _person("robot", agents, ("member", "*"), kind="service", plants=False)
    yield _person("decider", agents, ("decider", "*"), kind="service", plants=False)
    yield _person("connector", agents, ("connector", "*"), kind="service", plants=False)


def _elsewhere(agents: tuple[str, ...]) -> Iterator[Person]:
    yield _person("gina", agents, ("member", "*"), tenant=OTHERS)
    yield _person("gus", agents, ("owner", "*"), ("supervisor", "*"), tenant=OTHERS)


def _members(count: int, agents: tuple[str, ...]) -> Iterator[Person]:
    for number in range(count):
        again, which = divmod(number, len(_MORE))
        yield _person(_MORE[which] + (f"-{again + 1}" if again else ""), agents, ("member", "*"))


def _holder(role: str, document: Document, agents: tuple[str, ...]) -> Iterator[Person]:
    """Whoever holds a role of the document's own, where its rows speak of it, and somebody who is a member besides."""
    places = {row.agent for row in document.rows if row.subject == f"role:{role}"} or {"*"}
    held = tuple((role, place) for place in sorted(places))
    home = next((place for place in sorted(places) if place != "*"), agents[0])
    yield _person(role, agents, *held, home=home)
    if "*" not in places:
        yield _person(f"{role}-member", agents, *held, ("member", "*"), home=home)


def _named(document: Document) -> list[str]:
    subjects = {row.subject for row in document.rows if row.subject.startswith("user:")}
    return [one.removeprefix("user:") for one in sorted(subjects)]


def _other_roles(document: Document) -> list[str]:
    words = {row.subject for row in document.rows} | {
        one for link in document.links for one in (link.child, link.parent)
    }
    roles = {one.removeprefix("role:") for one in words if one.startswith("role:")}
    return sorted(roles - _OF_NO_PERSON)


def _person(
    name: str,
    agents: tuple[str, ...],
    *roles: tuple[str, str],
    id: str = "",  # noqa: A002 - what it is
    tenant: str = OURS,
    kind: str = "person",
    home: str | None = None,
    plants: bool = True,
) -> Person:
    home = home or agents[0]
    other = next(agent for agent in agents if agent != home)
    return Person(name=name, tenant=tenant, id=id, kind=kind, roles=roles, home=home, other=other, plants=plants)
