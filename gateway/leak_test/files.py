"""Turns workspaces into marked ones: each file of the team's, each person's own, and what no path leads to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.leak_test.driver import in_path
from gateway.leak_test.markers import Sort
from gateway.leak_test.scratch import Scratch, name_of
from gateway.leak_test.world import Person, PlantedFile
from gateway.model import Resource
from gateway.workspace.files import Workspace

COPY = "memory/copy.md"  # holds the bytes of MEMORY.md
LINKS = ("memory/link.md", "memory/twin.md")
Send = Callable[..., Awaitable[Any]]


async def plant_files(made: Scratch, send: Send, people: list[Person]) -> None:
    """All of a tenant's files, and the hashes of what then stands in them."""
    tenant = people[0].tenant
    for agent in made.world.agents:
        _team_files(made, tenant, agent)
    _links(made, tenant)
    for person in people:
        await _personal_files(made, send, person)
    for file in made.world.files:
        if file.tenant == tenant and file.mark is not None:
            path = made.root / tenant / file.agent / file.path
            made.world.marks.hashed(file.mark, path.read_text(encoding="utf-8"))


def _team_files(made: Scratch, tenant: str, agent: str) -> None:
    today = made.world.now.date()
    notes = {f"memory/{today.isoformat()}.md": "daily", f"memory/{today - timedelta(days=1)}.md": "daily"}
    planted = (
        ("AGENTS.md", Resource.MEMORY_RULES, "rules"),
        ("USER.md", Resource.MEMORY_SHARED, "shared"),
        ("MEMORY.md", Resource.MEMORY_LONGTERM, "longterm"),
        *((path, Resource.MEMORY_DAILY, loads) for path, loads in notes.items()),
        ("memory/2026-01-05.md", Resource.MEMORY_DAILY, None),
        ("memory/Memory.md", Resource.MEMORY_LONGTERM, None),  # on some disks another name of it, so it counts as it
        ("DREAMS.md", Resource.MEMORY_DREAMS, None),
        ("memory/dreaming/rem.md", Resource.MEMORY_DREAMS, None),
    )
    for path, resource, loads_as in planted:
        made_file = PlantedFile(agent=agent, tenant=tenant, path=path, resource=resource, loads_as=loads_as)
        text = _write(made, made_file, f"{agent}", path)
        if path == "MEMORY.md":
            _workspace(made, tenant, agent).replace(COPY, text)
            made_file.copied_as = Resource.MEMORY_DAILY


async def _personal_files(made: Scratch, send: Send, person: Person) -> None:
    """Instructions as everybody saves them, a note as everybody takes one, and what dreaming will have written."""
    folder, today = f"users/{person.id}", made.world.now.date().isoformat()
    for agent in (person.home, person.other):
        file = _personal(person, agent, f"{folder}/USER.md", Resource.PERSONAL_INSTRUCTIONS, "personal")
        content = {"content": _text(made, file, name_of(person), "personal instructions")}
        await send(person, "PUT", f"/v1/agents/{agent}/personal-instructions", content, if_none_match="*")
        file = _personal(person, agent, f"{folder}/MEMORY.md", Resource.PERSONAL_LONGTERM, "personal_longterm")
        _write(made, file, name_of(person), "personal memory")
    file = _personal(person, person.home, f"{folder}/memory/{today}.md", Resource.PERSONAL_DAILY, "personal_daily")
    note = {"scope": "personal", "text": _text(made, file, name_of(person), "personal note").strip()}
    private = in_path(f"agent:{person.home}:direct:{person.id}")
    await send(person, "POST", f"/v1/sessions/{private}/tools/memory_append", note)


def _links(made: Scratch, tenant: str) -> None:
    """Two names below `memory/` that lead out of the workspace."""
    agent = made.world.agents[0]
    for path, link in zip(LINKS, (Path.symlink_to, Path.hardlink_to), strict=True):
        file = PlantedFile(agent=agent, tenant=tenant, path=path, resource=Resource.MEMORY_DAILY, never=True)
        outside = made.root / tenant / f"outside-{path.rpartition('/')[2]}"
        outside.write_text(_text(made, file, agent, "file outside of the workspace"), encoding="utf-8")
        link(made.root / tenant / agent / path, outside)


def _personal(person: Person, agent: str, path: str, resource: Resource, loads_as: str) -> PlantedFile:
    return PlantedFile(agent=agent, tenant=person.tenant, path=path, resource=resource, owner=person, loads_as=loads_as)


def _write(made: Scratch, file: PlantedFile, whose: str, what: str) -> str:
    text = _text(made, file, whose, what)
    _workspace(made, file.tenant, file.agent).replace(file.path, text)
    return text


def _text(made: Scratch, file: PlantedFile, whose: str, what: str) -> str:
    file.mark = made.world.marks.make(Sort.FILE, whose, what, file)
    made.world.files.append(file)
    return f"A fact of {whose}: {file.mark.word}\n"


def _workspace(made: Scratch, tenant: str, agent: str) -> Workspace:
    return Workspace(made.root / tenant, agent)
