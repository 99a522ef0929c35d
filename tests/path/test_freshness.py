"""Which epoch answered, and that nobody is answered by an older one than they have seen (design section 7)."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import LogCapture
from tests.house import House
from tests.path.examples import NO_TOKEN, Example, examples


async def everything(home: House, logs: LogCapture) -> list[Example]:
    """Each row of the table, on a session of alice's; and one with a body that can't be read, where it takes one."""
    session = await home.open("alice")
    words = {"session": session, "agent": "flight", "profile": home.id("bob"), "token": NO_TOKEN, "version": "1"}
    found = list(examples(home, logs.loggers, **words))
    return [*found, *(Example(one.endpoint, one.path, [1]) for one in found if one.endpoint.body is not None)]


def epoch_of(home: House) -> int:
    """The epoch that is in force here."""
    return home.gateway.epochs.current(home.tenant)


@pytest.mark.parametrize("who", ["alice", "erin", "olga"])
async def test_every_answer_and_record_names_its_epoch(home: House, logs: LogCapture, who: str) -> None:
    """Issue: `epoch` in every response header and record; of errors too, to whoever is known."""
    statuses = set()
    for one in await everything(home, logs):
        before, written = epoch_of(home), len(await home.audit())

        answer = await one.send(home, who)

        after = epoch_of(home)
        asked = (one.endpoint.method, one.path, answer.status_code)
        assert answer.headers["gateway-epoch"] == str(after), asked
        records = [stored.record for stored in (await home.audit())[written:]]
        assert [record.epoch for record in records if record.kind == "access"] == [after], asked
        assert {record.epoch for record in records if record.kind == "decision"} <= {before}, asked
        statuses.add(answer.status_code)
    assert {200, 403, 422} <= statuses


async def test_whoever_has_seen_an_epoch_waits_for_it_on_every_route(home: House, logs: LogCapture) -> None:
    """Design section 7: `min_epoch` waits or fails. While it has not come nothing is decided, and nothing done."""
    asked = await everything(home, logs)
    seen = epoch_of(home) + 1

    async def send(one: Example) -> int:
        ahead = Example(one.endpoint, one.path, one.body, {**one.headers, "Gateway-Min-Epoch": str(seen)})
        answer = await ahead.send(home, "alice")
        came = answer.headers.get("gateway-epoch")
        assert answer.status_code == 503 if came is None else int(came) >= seen, (one.path, answer.text)
        return answer.status_code

    before = len(await home.audit(kind="decision"))
    assert {await each for each in asyncio.as_completed(map(send, asked))} == {503}
    assert len(await home.audit(kind="decision")) == before

    waiting = [asyncio.create_task(send(one)) for one in asked]
    await asyncio.sleep(0)  # each of them has begun
    await home.add("frank", "member")
    assert 503 not in {await each for each in waiting}
