"""The audit's chain: append-only, keyed, with a signed checkpoint outside the database (design section 12)."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.backends.sql.audit import SqlAudit
from gateway.backends.sql.audit_records import INDEXED, ChainHash, encode, indexed
from gateway.backends.sql.checkpoints import audit_key
from gateway.backends.sql.database import Database
from gateway.errors import ConfigurationFaults, Invalid, Unavailable
from gateway.model import AuditRecord, TenantId
from gateway.ports import AuditFilter
from tests.backends.stores import ACME, ALICE, BOB, GLOBEX, NOW, Stores, a_record

BOUND_S = 30
ALL = AuditFilter()
INITECH = TenantId("initech")


@dataclass(frozen=True)
class Chain:
    """A chain of ten records of acme and two of globex, and the files that somebody may tamper with."""

    audit: SqlAudit
    database: Database
    folder: Path

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoints" / "acme.json"

    def sql(self, statement: str, *values: object) -> int:
        """What somebody with the database file can do; how many records it touched."""
        connection = sqlite3.connect(self.folder / "gateway.db")
        touched = connection.execute(statement, values).rowcount
        connection.commit()
        connection.close()
        return touched

    async def faults(self) -> str:
        return " | ".join((await self.audit.verify(ACME)).faults)


@pytest.fixture
async def chain(tmp_path: Path) -> AsyncIterator[Chain]:
    """Ten records of acme, two of globex, in three batches."""
    async with Database(tmp_path / "gateway.db") as database:
        audit = SqlAudit(database, tmp_path / "checkpoints", audit_key(tmp_path))
        await audit.append([a_record(number) for number in range(1, 6)])
        await audit.append([a_record(6), a_record(1, GLOBEX), a_record(7), a_record(2, GLOBEX)])
        await audit.append([a_record(number) for number in range(8, 11)])
        yield Chain(audit, database, tmp_path)


async def test_a_whole_chain_verifies_and_gives_back_what_went_in(stores: Stores) -> None:
    """ports.Audit: records of several tenants each go to their own chain, in order."""
    records = [a_record(1), a_record(1, GLOBEX), a_record(2, profile=None, session=None, details={}), a_record(3)]
    await stores.audit.append(records)
    await stores.audit.append([])
    page = await stores.audit.read(ACME, ALL, limit=9, cursor=None, ascending=True)
    assert [one.record for one in page.items] == [records[0], records[2], records[3]]
    assert [one.sequence for one in page.items] == [1, 2, 3]
    reports = [await stores.audit.verify(tenant) for tenant in (ACME, GLOBEX)]
    assert [(one.records, one.faults) for one in reports] == [(3, ()), (1, ())]


async def test_records_of_the_first_stores_are_read_beside_those_of_now(chain: Chain) -> None:
    """Their bodies are objects that name each field, and their hashes cover those bytes."""
    old = a_record(1, INITECH)
    body = orjson.dumps(old._asdict())
    digest = ChainHash(audit_key(chain.folder))
    columns = ("tenant", "sequence", "hash", "body", *INDEXED)
    chain.sql(
        f"INSERT INTO audit ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        *(INITECH, 1, digest(digest.first(INITECH), body), body, *indexed(old)),
    )
    await chain.audit.append([a_record(2, INITECH)])

    page = await chain.audit.read(INITECH, ALL, limit=9, cursor=None, ascending=True)

    assert [one.record for one in page.items] == [old, a_record(2, INITECH)]
    assert "record 1" not in " | ".join((await chain.audit.verify(INITECH)).faults)


async def test_a_record_that_is_hard_to_write_down_is_written_all_the_same(stores: Stores) -> None:
    """Design section 12: no record is silently dropped, so nothing in one can stop its batch."""
    odd = a_record(2, profile="half \ud800", details={"path": Path("/x"), "\ud800": ["\udfff", {"deep": "\ud801"}]})
    await stores.audit.append([a_record(1), odd, a_record(3)])
    page = await stores.audit.read(ACME, ALL, limit=9, cursor=None)
    assert [one.record.request for one in page.items] == ["req_3", "req_2", "req_1"]
    assert page.items[1].record.profile == "half \\ud800"
    assert (await stores.audit.verify(ACME)).faults == ()


NASTY = ("\n", ",\n,", "],\n,[", "\r\n", "\u2028\u2029\x85", "\x00", '"],[', "\\n", "π 漢字 😀", "", ",\\n,")


async def test_what_is_written_as_a_batch_is_what_each_record_would_be_alone(stores: Stores) -> None:
    """No text of one record can end it, begin another, or change its bytes, wherever in the record it stands."""
    words = [f"{one}{other}" for one in NASTY for other in NASTY]
    fields = ("request", "surface", "operation", "code", "profile", "session", "target", "rule", "decision")
    records = []
    for number, word in enumerate(words):
        changed: dict[str, Any] = {fields[number % len(fields)]: word}
        details = {word: [word, {"deep": word}]}
        records.append(a_record(number, subjects=(word, word), details=details, **changed))
    alone = [body for record in records for _, body in encode([record])]

    together = encode(records)

    assert [record for record, _ in together] == records
    assert [body for _, body in together] == alone
    await stores.audit.append(records)
    page = await stores.audit.read(ACME, ALL, limit=200, cursor=None, ascending=True)
    assert [one.record for one in page.items] == records
    assert (await stores.audit.verify(ACME)).faults == ()


async def test_filters_and_pages_in_both_directions(stores: Stores) -> None:
    """interface.md, GET /v1/admin/audit."""
    records = [
        a_record(n, effect="deny" if n % 3 == 0 else "allow", profile=ALICE if n % 2 else BOB) for n in range(12)
    ]
    await stores.audit.append([*records, a_record(99, GLOBEX)])

    async def found(narrow: AuditFilter, *, ascending: bool = False) -> list[str]:
        requests: list[str] = []
        cursor = None
        while True:
            page = await stores.audit.read(ACME, narrow, limit=2, cursor=cursor, ascending=ascending)
            requests += [one.record.request for one in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return requests

    assert await found(ALL) == [f"req_{n}" for n in range(11, -1, -1)]
    assert await found(ALL, ascending=True) == [f"req_{n}" for n in range(12)]
    assert await found(AuditFilter(person=ALICE, effect="deny")) == ["req_9", "req_3"]
    window = AuditFilter(since=NOW + timedelta(milliseconds=4), until=NOW + timedelta(milliseconds=6))
    assert await found(window) == ["req_5", "req_4"]
    assert await found(AuditFilter(decision="dec_7", kind="decision", agent="flight", action="history")) == ["req_7"]
    assert await found(AuditFilter(session="other")) == []
    assert await found(AuditFilter(code="denied")) == []
    with pytest.raises(Invalid):
        await stores.audit.read(ACME, ALL, limit=2, cursor="no cursor")


async def test_who_filters_by_person_session_or_decision_walks_an_index(chain: Chain) -> None:
    """Ours: reading the audit stays quick while it grows."""
    connection = sqlite3.connect(chain.folder / "gateway.db")
    for column in ("profile", "session", "decision"):
        query = f"EXPLAIN QUERY PLAN SELECT body FROM audit WHERE tenant = ? AND {column} = ? ORDER BY sequence DESC"
        (plan, *_) = connection.execute(query, ("acme", "x")).fetchall()
        assert f"audit_{column}" in plan[3]
    connection.close()


def _rehash(chain: Chain, sequence: int, body: bytes, key: bytes) -> None:
    chain.sql("UPDATE audit SET body = ?, hash = ? WHERE sequence = ? AND tenant = 'acme'", body, key, sequence)


TAMPERING: dict[str, tuple[Callable[[Chain], object], str]] = {
    "a changed text": (
        lambda chain: chain.sql("UPDATE audit SET body = replace(body, 'allow', 'deny!') WHERE sequence = 4"),
        "record 4 was changed",
    ),
    "a changed text with a hash of another key": (
        lambda chain: _rehash(chain, 4, b"{}", ChainHash(b"guess")(b"", b"{}")),
        "record 4 was changed",
    ),
    "a changed column": (
        lambda chain: chain.sql("UPDATE audit SET profile = 'prf_bob' WHERE sequence = 4 AND tenant = 'acme'"),
        "record 4 has columns that say something else",
    ),
    "a removed record": (
        lambda chain: chain.sql("DELETE FROM audit WHERE sequence = 4"),
        "record 4 is missing",
    ),
    "a removed first record": (
        lambda chain: chain.sql("DELETE FROM audit WHERE sequence = 1"),
        "record 1 is missing",
    ),
    "removed records": (
        lambda chain: chain.sql("DELETE FROM audit WHERE sequence BETWEEN 4 AND 6"),
        "records 4 to 6 are missing",
    ),
    "a removed record, the rest renumbered": (
        lambda chain: (
            chain.sql("DELETE FROM audit WHERE sequence = 4 AND tenant = 'acme'"),
            *(chain.sql("UPDATE audit SET sequence = ? WHERE sequence = ?", n - 1, n) for n in range(5, 11)),
        )[0],
        "record 4 was changed, moved, or follows one that was removed",
    ),
    "two records that changed places": (
        lambda chain: (
            chain.sql("UPDATE audit SET sequence = -4 WHERE sequence = 4"),
            chain.sql("UPDATE audit SET sequence = 4 WHERE sequence = 5"),
            chain.sql("UPDATE audit SET sequence = 5 WHERE sequence = -4"),
        )[0],
        "record 4 was changed, moved, or follows one that was removed",
    ),
    "an added record": (
        lambda chain: chain.sql(
            "INSERT INTO audit SELECT tenant, 11, at, kind, profile, agent, session, action, effect, code, decision,"
            " body, hash FROM audit WHERE sequence = 10 AND tenant = 'acme'"
        ),
        "record 11 was changed, moved",
    ),
    "another tenant's chain": (
        lambda chain: (
            chain.sql("DELETE FROM audit WHERE tenant = 'acme'"),
            chain.sql("UPDATE audit SET tenant = 'acme' WHERE tenant = 'globex'"),
        )[0],
        "record 1 was changed",
    ),
    "a cut tail": (
        lambda chain: chain.sql("DELETE FROM audit WHERE sequence > 8"),
        "the tail was cut: records 9 to 10 are missing",
    ),
    "a missing checkpoint": (lambda chain: chain.checkpoint.unlink(), "the checkpoint is missing"),
    "a forged checkpoint": (
        lambda chain: (
            chain.checkpoint.write_bytes(orjson.dumps(orjson.loads(chain.checkpoint.read_bytes()) | {"sequence": 8}))
            and None
        ),
        "the checkpoint is forged",
    ),
    "another tenant's checkpoint": (
        lambda chain: chain.checkpoint.write_bytes(chain.checkpoint.with_name("globex.json").read_bytes()) and None,
        "the checkpoint is forged",
    ),
    "a checkpoint that is no JSON": (
        lambda chain: chain.checkpoint.write_text("x") and None,
        "the checkpoint is forged",
    ),
}


@pytest.mark.parametrize("kind", TAMPERING)
async def test_tampering_shows_and_still_shows_once_the_chain_was_written_on(chain: Chain, kind: str) -> None:
    """Design section 12: changed, removed, moved and added records, a cut tail, a missing or forged checkpoint."""
    tamper, said = TAMPERING[kind]
    assert await chain.faults() == ""
    tamper(chain)
    assert said in await chain.faults()
    await chain.audit.append([a_record(11)])
    assert await chain.faults() != ""


async def test_a_cut_tail_is_not_hidden_by_writing_on_past_it(chain: Chain) -> None:
    """Design section 12: what was found when the chain was written on stays in the signed checkpoint."""
    chain.sql("DELETE FROM audit WHERE sequence > 8 AND tenant = 'acme'")
    await chain.audit.append([a_record(number) for number in range(20, 25)])
    await chain.audit.append([a_record(25)])
    report = await chain.audit.verify(ACME)
    assert report.records == 14
    assert report.faults == ("when record 9 was added, record 10, which was signed, was gone or another",)


async def test_a_broken_record_does_not_keep_the_others_from_being_read(chain: Chain) -> None:
    """Ours: somebody has to be able to look at a chain that was tampered with."""
    chain.sql("UPDATE audit SET body = 'x' WHERE sequence = 9 AND tenant = 'acme'")
    page = await chain.audit.read(ACME, ALL, limit=3, cursor=None)
    assert [one.record.request for one in page.items] == ["req_10", "", "req_8"]
    broken = page.items[1].record
    assert (broken.profile, broken.details) == (ALICE, {"unreadable": True})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", "noon"),
        ("agent", ["flight"]),
        ("agent", 7),
        ("operation", None),
        ("code", 7),
        ("subjects", None),
        ("subjects", [7]),
        ("details", 7),
        (None, "x"),
        (None, "7"),
        (None, "[]"),
    ],
)
async def test_a_broken_decision_is_counted_as_such_and_the_others_are_replayed(
    chain: Chain, field: str | None, value: object
) -> None:
    """Ours: a preview reads what somebody may have tampered with, whatever they made of it."""
    records = [a_record(number) for number in range(11, 14)]
    await chain.audit.append(records)
    fields = orjson.loads(encode(records[:1])[0][1])
    if field is not None:
        fields[AuditRecord._fields.index(field)] = value
    body = value if field is None else orjson.dumps(fields).decode()
    before = await chain.audit.decisions(ACME, records[0].at, most=100)
    chain.sql(f"UPDATE audit SET body = '{body}' WHERE sequence = 12 AND tenant = 'acme'")

    found = await chain.audit.decisions(ACME, records[0].at, most=100)

    assert (before.unreadable, found.unreadable) == (0, 1)
    assert (found.seen, sum(found.counts.values())) == (before.seen, before.seen - 1)


async def test_another_key_verifies_nothing_and_writes_nothing(chain: Chain) -> None:
    """Design section 12: the chain is keyed. A lost key must not start a second chain behind the first."""
    other = SqlAudit(chain.database, chain.folder / "checkpoints", b"another key".ljust(32))
    report = await other.verify(ACME)
    assert "another key" in report.faults[0]
    with pytest.raises(Unavailable):
        await other.append([a_record(11)])
    whole = await chain.audit.verify(ACME)
    assert (whole.records, whole.faults) == (10, ())


def test_the_key_is_made_once_readable_by_its_owner_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    """Design section 12: never in the database, and never silently replaced."""
    key = audit_key(tmp_path / "state")
    file = tmp_path / "state" / "audit.key"
    assert (len(key), audit_key(tmp_path / "state"), file.stat().st_mode & 0o777) == (32, key, 0o600)
    assert [one.name for one in file.parent.iterdir()] == ["audit.key"]
    for broken in (b"", b"00", b"zz" * 32, b"\xff" * 64):
        file.write_bytes(broken)
        with pytest.raises(ConfigurationFaults):
            audit_key(tmp_path / "state")
        assert file.read_bytes() == broken


async def test_a_checkpoint_that_cannot_be_written_stops_the_next_append_and_loses_nothing(chain: Chain) -> None:
    """Ours: records that are on disk are not written twice, and nothing goes on unsigned for long."""
    lock = chain.checkpoint.with_suffix(".lock")
    lock.unlink()
    lock.mkdir()
    await chain.audit.append([a_record(11)])
    with pytest.raises(Unavailable):
        await chain.audit.append([a_record(12)])
    lock.rmdir()
    await chain.audit.append([a_record(12)])
    report = await chain.audit.verify(ACME)
    assert (report.records, report.faults) == (12, ())
    assert orjson.loads(chain.checkpoint.read_bytes())["sequence"] == 12


def _append_for_ever(folder: Path, surface: str, pipe: Pipe) -> None:
    async def append() -> None:
        async with Database(folder / "gateway.db") as database:
            audit = SqlAudit(database, folder / "checkpoints", audit_key(folder))
            number = 0
            while True:
                await audit.append([a_record(number + step, surface=surface) for step in range(3)])
                number += 3
                pipe.send(number)

    asyncio.run(append())


async def test_processes_killed_while_they_append_leave_one_chain_with_all_they_acknowledged(tmp_path: Path) -> None:
    """Design section 12 and the issue: SIGKILL in between; many processes, no fork, no gap."""
    spawn = multiprocessing.get_context("spawn")
    async with Database(tmp_path / "gateway.db") as database:
        audit = SqlAudit(database, tmp_path / "checkpoints", audit_key(tmp_path))
        for round_ in range(2):
            acknowledged = await asyncio.to_thread(_run_and_kill, spawn, tmp_path, round_)
            report = await audit.verify(ACME)
            assert report.faults == ()
            for surface, count in acknowledged.items():
                assert await _count(audit, surface) >= count > 0
        await audit.append([a_record(1, surface="after")])
        assert (await audit.verify(ACME)).faults == ()


def _run_and_kill(spawn: multiprocessing.context.SpawnContext, folder: Path, round_: int) -> dict[str, int]:
    running = {}
    for name in ("one", "two"):
        ours, theirs = spawn.Pipe(duplex=False)
        surface = f"{name} {round_}"
        process = spawn.Process(target=_append_for_ever, args=(folder, surface, theirs))
        process.start()
        running[surface] = (process, ours)
    acknowledged: dict[str, int] = {}
    for surface, (_, pipe) in running.items():
        while acknowledged.get(surface, 0) < 30:
            assert pipe.poll(BOUND_S)
            acknowledged[surface] = pipe.recv()
    for process, _ in running.values():
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(BOUND_S)
    for surface, (_, pipe) in running.items():
        try:
            while pipe.poll():
                acknowledged[surface] = pipe.recv()
        except EOFError:
            pass
    return acknowledged


async def _count(audit: SqlAudit, surface: str) -> int:
    count, cursor = 0, None
    while True:
        page = await audit.read(ACME, ALL, limit=200, cursor=cursor)
        count += sum(one.record.surface == surface for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return count


async def test_records_that_differ_in_one_field_have_other_hashes(chain: Chain) -> None:
    """Ours: the hash covers the whole record, the fields that no column repeats too."""
    page = await chain.audit.read(ACME, ALL, limit=1, cursor=None)
    (last,) = page.items
    await chain.audit.append([last.record])
    await chain.audit.append([last.record._replace(rule="line 2")])
    again = await chain.audit.read(ACME, ALL, limit=3, cursor=None)
    assert len({one.hash for one in again.items}) == 3
