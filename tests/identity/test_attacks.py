"""The attack table: every row is refused for its reason, touches nothing, is written down once and tells nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import orjson
import pytest
import pytest_asyncio

from gateway.identity.cookies import COOKIE
from gateway.settings import Log, Settings, State
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.identity.attack_events import happens
from tests.identity.attack_traces import Traces
from tests.identity.attack_words import Row, table
from tests.identity.attacking import World, world

TABLE = table()
LEAST = 120
TITLES = {
    401: ("unauthenticated", "Who are you?"),
    403: ("tool_not_allowed", "You can't do this here"),
    404: ("not_found", "Not found"),
    503: ("unavailable", "Not available right now"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calm(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One world for all attacks before which nothing happens: a refusal leaves it as it was, and each proves that."""
    folder = tmp_path_factory.mktemp("attacked")
    settings = Settings(state=State(folder=folder / ".gateway"), log=Log(level="debug"))
    async with world(settings, folder, SettableClock(), LogCapture(settings)) as attacked:
        yield attacked


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("row", TABLE.attacks, ids=[row.name for row in TABLE.attacks])
async def test_an_attack_is_refused_for_its_reason_and_does_nothing(
    row: Row, calm: World, settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture
) -> None:
    """Issue 3, "what it must show" 2; the same request with an honest credential succeeds in the same world."""
    if row.before:
        async with world(settings, tmp_path, clock, logs) as attacked:
            await _holds(row, attacked)
    else:
        await _holds(row, calm)


async def _holds(row: Row, attacked: World) -> None:
    honest = TABLE.ways[row.way]
    credentials = [await attacked.credential(one.credential) for one in honest.send]
    first = await attacked.attempt(TABLE.attempts[honest.attempt], honest.send, credentials, honest.peer)
    assert first.is_success, first.text

    presented = [await attacked.credential(one.credential) for one in row.sent]

    async def attack() -> httpx2.Response:
        return await attacked.attempt(TABLE.attempts[row.attempt], row.sent, presented, row.peer)

    for event in row.before:
        await happens(attacked, event, attack)
    traces = await Traces.before(attacked)
    answer = await attack()

    assert answer.status_code == row.answer, answer.text
    told = await traces.told()
    # What was brought a second time is answered like the first time, so that it is not brought again.
    answered = ["ok"] if row.answer == 200 else []
    assert sorted(told.audited) == sorted([row.reason, *answered] if row.audited else answered)
    assert told.counted == ([] if row.audited else [row.reason])
    assert told.decided == ([] if row.decided is None else [row.decided])
    assert await traces.unchanged()
    if row.page:
        _is_a_page(row, answer)
    elif row.answer == 200:
        assert answer.json() == {}
    else:
        _is_a_problem(row, answer)
    assert COOKIE not in answer.headers.get("set-cookie", "")
    for text in presented:  # no log line holds what was presented
        for part in text.split("."):
            assert len(part) < 20 or part not in attacked.logs.text


def _is_a_page(row: Row, answer: httpx2.Response) -> None:
    """A page for people, which says what to do and not why."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert TABLE.says[row.says] in answer.text
    assert row.reason not in answer.text


def _is_a_problem(row: Row, answer: httpx2.Response) -> None:
    """Every refusal of a kind is the same bytes but for its `request_id`."""
    code, title = TITLES[row.answer]
    assert orjson.loads(answer.content) == {
        "type": f"urn:gateway:problem:{code}",
        "title": title,
        "status": row.answer,
        "detail": TABLE.says[row.says],
        "code": code,
        "request_id": answer.headers["x-request-id"],
        "errors": [],
    }
    if row.answer == 401:
        assert answer.headers["www-authenticate"].startswith('Bearer realm="gateway"')


def test_the_table_is_long_and_says_each_attack_once() -> None:
    """Issue 3: at least 120 rows. Two rows of one name would hide each other in a report."""
    names = Counter(row.name for row in TABLE.attacks)

    assert len(TABLE.attacks) >= LEAST
    assert [name for name, count in names.items() if count > 1] == []
    assert {row.way for row in TABLE.attacks} == set(TABLE.ways)
    used = {row.attempt for row in TABLE.attacks} | {way.attempt for way in TABLE.ways.values()}
    assert used == set(TABLE.attempts)
    assert {row.says for row in TABLE.attacks} == set(TABLE.says)
