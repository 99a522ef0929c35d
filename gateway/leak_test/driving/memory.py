"""Memory files: every file that was planted, by its path and by everything that could be another name of it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from gateway.leak_test.driver import Twin
from gateway.leak_test.driving.toolbox import Bench
from gateway.leak_test.files import COPY, LINKS
from gateway.leak_test.markers import Sort
from gateway.leak_test.world import PlantedFile
from gateway.model import Action

_GOT = {Sort.FILE: Action.GET}
# Other spellings of one path: case, Unicode forms, dots, escapes, and ways around.
_SPELLINGS = (
    str.lower,
    str.upper,
    lambda path: path.replace("M", "\uff2d", 1),  # a full-width letter
    lambda path: path.replace("memory", "Memory", 1),
    lambda path: f"./{path}",
    lambda path: f"/{path}",
    lambda path: f"memory/../{path}",
    lambda path: f"memory/{path}",
    lambda path: f"memory/./{path}",
    lambda path: path.replace("/", "//"),
    lambda path: path.replace("/", "\\"),
    lambda path: f"{path} ",
    lambda path: f"{path}.",
    lambda path: f"{path}/",
    lambda path: f"{path}\u0000",
    lambda path: quote(path, safe=""),
    lambda path: path.replace(".md", ".MD"),
)


async def memory_get(bench: Bench) -> None:
    """`memory_get` of every file by its own path; of a few by all the others."""
    for file in _files(bench):
        await _by_path(bench, file)
    for file in _tricked(bench):
        for spell in _SPELLINGS:
            await bench.call("memory_get", {"path": spell(file.path), **_of(bench, file)}, _GOT)
    for path in (COPY, *LINKS, "memory", "users", ".", "..", "../outside-link.md", "memory/.dreams/short-term.json"):
        await bench.call("memory_get", {"path": path, "from": 1, "lines": 50}, _GOT)


async def _by_path(bench: Bench, file: PlantedFile) -> None:
    body = {"path": file.path, **_of(bench, file)}
    rules = file.path == "AGENTS.md"  # which is no memory: no path leads a tool there
    may = not rules and bench.driver.expectation.file(bench.caller, bench.origin, Action.GET, file)
    due = (file.mark,) if may and file.mark is not None else ()
    await bench.call("memory_get", body, _GOT, due=due, twin=None if may else _missing(bench, file, body))


def _missing(bench: Bench, file: PlantedFile, body: dict[str, object]) -> Twin | None:
    """A file of the same place that is not there."""
    folder, slash, _ = file.path.rpartition("/")
    other = f"users/prf_{'0' * 26}/USER.md" if file.owner or not folder else f"{folder}{slash}not-there.md"
    whose = file.agent if file.owner is None else file.owner.name
    what = f"{whose}'s {file.path} (that it is there)"
    real = file.path
    return Twin(target=bench.target("memory_get"), body=body | {"path": other}, real=real, other=other,
                whose=whose, what=what)  # fmt: skip


def _of(bench: Bench, file: PlantedFile) -> dict[str, object]:
    return {} if file.agent == bench.origin.agent else {"agentId": file.agent}


def _files(bench: Bench) -> Iterator[PlantedFile]:
    """From one place all of the organisation's, the other's only where an agent's name is the same in both."""
    for file in bench.world.files:
        if file.tenant != bench.origin.tenant or file.never:
            continue
        here = file.agent == bench.origin.agent
        team = file.owner is None and (here or file.path == "MEMORY.md")
        if bench.thorough or team or (here and _is_one_of_few(file)):
            yield file
    if bench.thorough:
        yield from (one for one in bench.world.files if one.tenant != bench.origin.tenant and one.owner is not None)


def _is_one_of_few(file: PlantedFile) -> bool:
    return file.loads_as == "personal"


def _tricked(bench: Bench) -> Iterator[PlantedFile]:
    here = [one for one in bench.world.files
            if (one.tenant, one.agent) == (bench.origin.tenant, bench.origin.agent)]  # fmt: skip
    yield from (one for one in here if one.path == "MEMORY.md")
    if bench.thorough:
        others = [one for one in here if one.owner not in (None, bench.caller.person) and _is_one_of_few(one)]
        yield from others[:4]


async def memory_append(bench: Bench) -> None:
    """`memory_append`, which only the sandbox and the refusals are asked: a note would change what is looked for."""
    await bench.call("memory_append", {"scope": "nobody", "text": "A fact."}, {})
