"""LINE's webhooks over HTTP: signed, fresh, each event once, and durable before the answer (issue 3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
import pytest_asyncio

from gateway.errors import Unavailable
from gateway.settings import Settings
from tests.channels import BOT, channel_house, event, link, signed, webhook, with_accounts
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House

HOOK = "/v1/connectors/line/support/webhook"
GROUP = "agent:flight:line:support:group:C1"
IN_GROUP = {"type": "group", "groupId": "C1", "userId": "U1"}


@pytest_asyncio.fixture
async def home(settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture) -> AsyncIterator[House]:
    """`acme`, whose services bring LINE's messages."""
    async with channel_house(with_accounts(settings, tmp_path), clock, logs.loggers) as made:
        yield made


def _now(home: House, **ago: float) -> int:
    return int((home.gateway.clock.now() - timedelta(**ago)).timestamp() * 1000)


async def _said(home: House, key: str) -> list[tuple[str | None, str]]:
    """Who said what there, past the operations: what is stored."""
    facts = await home.gateway.stores.sessions.find(home.tenant, key)
    if facts is None:
        return []
    found = await home.gateway.stores.transcripts.latest(
        home.tenant, facts.session.id, incarnation=1, after=0, limit=200
    )
    return [(one.sender, one.content) for one in found or ()]


async def _rows(home: House) -> dict[str, int]:
    """How many rows what a webhook could change has."""

    def count(connection: Any) -> dict[str, int]:
        tables = ("sessions", "messages", "participants", "channel_events", "profiles")
        return {one: connection.exec_driver_sql(f"SELECT count(*) FROM {one}").scalar() for one in tables}

    return await home.gateway.stores.database.read(count)


async def _codes(home: House) -> list[str]:
    return [one.record.code for one in await home.audit(kind="access") if one.record.operation == "connectors.webhook"]


async def test_a_signed_message_is_in_the_senders_session_before_line_is_answered(home: House) -> None:
    """A linked user, an unlinked one, a group and a room: each where they belong, as whom they are."""
    alice = await link(home, "alice", "U1")
    at = _now(home)

    answer = await webhook(
        home,
        event(1, at),
        event(2, at, source={"type": "user", "userId": "U9"}),
        event(3, at, source=IN_GROUP),
        event(4, at, source={"type": "room", "roomId": "R1", "userId": "U9"}),
        event(5, at, source={"type": "group", "groupId": "C1"}),
        event(6, at, source=IN_GROUP, message={"type": "sticker", "id": "6", "packageId": "1"}),
    )

    assert (answer.status_code, answer.json()) == (200, {})
    assert await _said(home, home.private("alice")) == [(alice, "message 1")]
    assert await _said(home, "agent:flight:line:support:direct:U9") == [(None, "message 2")]
    assert await _said(home, GROUP) == [(alice, "message 3"), (None, "message 5"), (alice, "[sticker]")]
    assert await _said(home, "agent:flight:line:support:room:R1") == [(None, "message 4")]
    records = [one.record for one in await home.audit(kind="access")]
    assert {one.request for one in records} == {answer.headers["x-request-id"]}
    assert {one.principal for one in records if one.profile == home.id("line")} == {"webhook:line:support"}
    assert [one.operation for one in records][:4] == [
        "connectors.webhook",
        "connectors.turn",
        "sessions.create",
        "messages.post",
    ]


def _body(home: House) -> bytes:
    return orjson.dumps({"destination": BOT, "events": [event(1, _now(home))]})


@pytest.mark.parametrize(
    ("signatures", "reason"),
    [
        (lambda _body: [], "credential_missing"),
        (lambda body: [signed(body), signed(body)], "credentials_several"),
        (lambda body: [signed(body), "x"], "credentials_several"),
        (lambda body: [signed(body + b" ")], "signature_wrong"),
        (lambda body: [signed(body, "sales")], "signature_wrong"),
        (lambda body: [signed(body).lower()], "signature_wrong"),
        (lambda body: [signed(body).rstrip("=")], "signature_wrong"),
        (lambda body: [signed(body) + "\u00e9"], "signature_wrong"),
        (lambda _body: [""], "signature_wrong"),
    ],
)
async def test_what_is_not_signed_is_refused_before_it_is_read(
    home: House, logs: LogCapture, signatures: Any, reason: str
) -> None:
    """The HMAC covers the raw body: missing, doubled, forged or of another account, nothing happens."""
    await link(home, "alice", "U1")
    before = await _rows(home)
    body = _body(home)
    for content in (body, b"{" + body):
        headers = [("X-Line-Signature", one) for one in signatures(content)]
        refused = await _post(home, content, headers)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    assert await _rows(home) == before
    assert await home.audit(kind="access") == []  # nobody knows whose it is
    home.gateway.refusals.flush()
    assert {line["code"] for line in logs.lines if line["event"] == "refused"} == {reason}

    assert (await _post(home, body, [("X-Line-Signature", signed(body))])).status_code == 200
    assert await _rows(home) != before


async def _post(home: House, content: bytes, headers: list[tuple[str, str]], path: str = HOOK) -> httpx2.Response:
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    transport = httpx2.ASGITransport(app=home.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
        return await client.post(path, content=content, headers=encoded)


async def test_one_byte_of_a_body_that_was_changed_is_refused(home: House) -> None:
    """Wherever it is."""
    body = _body(home)
    before = await _rows(home)
    for place in range(0, len(body), 7):
        changed = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        assert (await _post(home, changed, [("X-Line-Signature", signed(body))])).status_code == 401
    assert await _rows(home) == before


async def test_an_account_that_is_not_there_is_refused_like_a_wrong_signature(home: House) -> None:
    """Trying names teaches nothing; a channel with a connector of its own has no webhook here."""
    body = _body(home)
    answers = [
        (await _post(home, body, [("X-Line-Signature", signed(body, by))], f"/v1/connectors/line/{account}/webhook"))
        for account, by in (("support", "sales"), ("nothing", "support"), ("sales", "support"))
    ]
    assert {one.status_code for one in answers} == {401}
    assert len({orjson.dumps({**one.json(), "request_id": ""}) for one in answers}) == 1


async def test_an_event_is_handled_once_however_often_it_comes(home: House) -> None:
    """A replayed request and LINE's own redelivery are answered 200 and do nothing; the audit says so."""
    alice = await link(home, "alice", "U1")
    first = event(1, _now(home))
    again = {**first, "deliveryContext": {"isRedelivery": True}}

    assert [(await webhook(home, one)).status_code for one in (first, first, again)] == [200, 200, 200]
    assert (await webhook(home, first, event(2, _now(home)))).status_code == 200

    assert await _said(home, home.private("alice")) == [(alice, "message 1"), (alice, "message 2")]
    assert (await _codes(home)).count("event_replayed") == 3
    # The same event id of another account is another event.
    assert (await webhook(home, first, account="sales")).status_code == 200
    assert await _said(home, "agent:flight:line:sales:direct:U1") == [(None, "message 1")]


async def test_an_event_is_of_now_or_refused(home: House, clock: SettableClock) -> None:
    """A captured request is no good a day later, when its events are forgotten too; others beside it are handled."""
    before = await _rows(home)
    for ago in ({"hours": 24.1}, {"minutes": -6}):
        refused = await webhook(home, event(1, _now(home, **ago)))
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    assert await _codes(home) == ["event_not_of_now"] * 2
    assert await _rows(home) == before

    mixed = await webhook(home, event(1, _now(home, hours=25)), event(2, _now(home, hours=23)))
    assert mixed.status_code == 200
    assert await _said(home, "agent:flight:line:support:direct:U1") == [(None, "message 2")]
    clock.advance(2 * 3600)
    assert (await webhook(home, event(2, _now(home, hours=25)))).status_code == 401


async def test_a_webhook_for_another_bot_or_that_is_not_lines_changes_nothing(home: House) -> None:
    """Signed it is; what it says is looked at all the same."""
    before = await _rows(home)
    at = _now(home)
    other = orjson.dumps({"destination": "Uother", "events": [event(1, at)]})
    refused = await _post(home, other, [("X-Line-Signature", signed(other))])
    assert refused.status_code == 401
    assert await _codes(home) == ["destination_wrong"]
    bad: list[Any] = [
        b"{",
        b"[]",
        orjson.dumps({"destination": BOT}),
        orjson.dumps({"destination": BOT, "events": [event(one, at) for one in range(101)]}),
        orjson.dumps({"destination": BOT, "events": [event(1, at, webhookEventId="")]}),
        orjson.dumps({"destination": BOT, "events": [event(1, at, timestamp="now")]}),
        orjson.dumps({"destination": BOT, "events": [event(1, at, type="not a word")]}),
        orjson.dumps({"destination": BOT, "events": [event(1, at, timestamp=10**18)]}),
        orjson.dumps({"destination": BOT, "events": [event(1, at, source={"type": "user", "userId": "U\n1"})]}),
    ]
    for content in bad:
        answer = await _post(home, content, [("X-Line-Signature", signed(content))])
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), content[:80]
    assert await _rows(home) == before
    nothing = orjson.dumps({"destination": BOT, "events": []})  # LINE's own check of the address
    assert (await _post(home, nothing, [("X-Line-Signature", signed(nothing))])).status_code == 200


async def test_people_come_and_go_as_line_says(home: House) -> None:
    """memberJoined, memberLeft, and the bot's own leaving; what asks for nothing is remembered and does nothing."""
    alice, bob = await link(home, "alice", "U1"), await link(home, "bob", "U2")
    at = _now(home)

    def members(*users: str) -> dict[str, Any]:
        return {"members": [{"type": "user", "userId": one} for one in users]}

    group = {"type": "group", "groupId": "C1"}
    quiet = [
        event(number, at, type=kind, source=source, message=None)
        for number, (kind, source) in enumerate(
            [
                ("follow", {"type": "user", "userId": "U1"}),
                ("unfollow", {"type": "user", "userId": "U1"}),
                ("join", group),
                ("postback", {"type": "user", "userId": "U1"}),
                ("unsend", group),
                ("accountLink", None),
                ("message", {"type": "moon", "moonId": "M1"}),
            ],
            start=100,
        )
    ]
    before = await _rows(home)
    assert (await webhook(home, *quiet)).status_code == 200
    assert await _rows(home) == {**before, "channel_events": len(quiet)}

    joined = event(1, at, type="memberJoined", source=group, joined=members("U1", "U2", "U9"), message=None)
    assert (await webhook(home, joined)).status_code == 200
    told = (await home.get("alice", f"/v1/sessions/{GROUP}")).json()
    assert set(told["participants"]) == {home.id("line"), alice, bob}
    left = event(2, at, type="memberLeft", source=group, left=members("U1"), message=None)
    assert (await webhook(home, left)).status_code == 200
    assert (await home.get("alice", f"/v1/sessions/{GROUP}")).status_code == 404
    assert (await home.get("bob", f"/v1/sessions/{GROUP}")).status_code == 200
    assert (await webhook(home, event(3, at, type="leave", source=group, message=None))).status_code == 200
    assert (await home.get("bob", f"/v1/sessions/{GROUP}")).status_code == 404


async def test_an_event_that_fails_is_sent_again_and_loses_no_other(
    home: House, monkeypatch: pytest.MonkeyPatch, logs: LogCapture
) -> None:
    """Answered so that LINE sends all of it again: then what was handled does nothing, and the rest is handled."""
    events = [event(number, _now(home)) for number in (1, 2, 3)]
    append, failures = home.gateway.stores.transcripts.append, [Unavailable("The store is away."), OSError("worse")]

    async def failing(tenant: Any, draft: Any) -> Any:
        if draft.content == "message 2" and failures:
            raise failures.pop(0)
        return await append(tenant, draft)

    monkeypatch.setattr(home.gateway.stores.transcripts, "append", failing)
    for _ in range(2):
        answer = await webhook(home, *events)
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert (await webhook(home, *events)).status_code == 200

    said = [text for _, text in await _said(home, "agent:flight:line:support:direct:U1")]
    assert said == ["message 1", "message 3", "message 2"]
    assert [line["tenant"] for line in logs.lines if line["event"] == "event_failed"] == [home.tenant]


async def test_whoever_left_stays_out_when_an_earlier_event_is_handled_late(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lets somebody in may fail and be sent again after their leaving: they are not in the chat (design 6)."""
    alice, at = await link(home, "alice", "U1"), _now(home)
    await webhook(home, event(9, at, source={"type": "group", "groupId": "C1", "userId": "U9"}))
    left = {"members": [{"type": "user", "userId": "U1"}]}
    events = [
        event(1, at, source=IN_GROUP),
        event(2, at, type="memberLeft", source={"type": "group", "groupId": "C1"}, left=left, message=None),
    ]
    join, failures = home.gateway.stores.sessions.join, [Unavailable("The store is away.")]

    async def failing(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return await join(*arguments)

    monkeypatch.setattr(home.gateway.stores.sessions, "join", failing)
    answers = [(await webhook(home, *events)).status_code for _ in range(3)]

    assert answers == [503, 200, 200]
    assert (alice, "message 1") in await _said(home, GROUP)
    assert (await home.get("alice", f"/v1/sessions/{GROUP}")).status_code == 404


async def test_an_event_that_is_being_handled_is_not_handled_beside_it(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LINE redelivers while the first try still runs: it is told to come again."""
    one = event(1, _now(home))
    append, began, go_on = home.gateway.stores.transcripts.append, asyncio.Event(), asyncio.Event()

    async def slow(tenant: Any, draft: Any) -> Any:
        began.set()
        await go_on.wait()
        return await append(tenant, draft)

    monkeypatch.setattr(home.gateway.stores.transcripts, "append", slow)
    async with asyncio.timeout(5):
        first = asyncio.create_task(webhook(home, one))
        await began.wait()
        assert (await webhook(home, one)).status_code == 503
        go_on.set()
        assert (await first).status_code == 200
    assert (await webhook(home, one)).status_code == 200
    assert len(await _said(home, "agent:flight:line:support:direct:U1")) == 1


async def test_what_the_policy_refuses_is_done_with(home: House) -> None:
    """Sent again it would be refused again: a disabled sender, an archived group. The audit has why."""
    await link(home, "alice", "U1")
    assert (await webhook(home, event(1, _now(home), source=IN_GROUP))).status_code == 200
    await home.post("alice", f"/v1/sessions/{GROUP}/archive")
    assert (await webhook(home, event(2, _now(home), source=IN_GROUP))).status_code == 200
    await home.send("olga", "DELETE", f"/v1/admin/people/{home.id('alice')}")
    assert (await webhook(home, event(3, _now(home)))).status_code == 200

    assert [text for _, text in await _said(home, GROUP)] == ["message 1"]
    assert await _said(home, home.private("alice")) == []
    codes = {one.record.code for one in await home.audit(kind="access")}
    assert {"conflict", "profile_disabled"} <= codes


async def test_a_service_that_is_disabled_or_lost_its_role_brings_nothing_and_loses_nothing(home: House) -> None:
    """The signature says which account it is; what its service may do is the policy's, each time. An account that is
    not set up is the operator's to mend, and LINE keeps what it brings until then."""
    one, two = event(1, _now(home)), event(2, _now(home))
    roles = f"/v1/admin/people/{home.id('line')}/roles"
    await home.send("olga", "PUT", roles, {"roles": []})
    assert (await webhook(home, one)).status_code == 503
    await home.send("olga", "DELETE", f"/v1/admin/people/{home.id('sales')}")
    assert (await webhook(home, two, account="sales")).status_code == 503

    for account in ("support", "sales"):
        assert await _said(home, f"agent:flight:line:{account}:direct:U1") == []
    codes = {one.record.code for one in await home.audit(kind="access", effect="deny")}
    assert codes == {"tool_not_allowed", "profile_disabled"}
    await home.send("olga", "PUT", roles, {"roles": [{"role": "connector"}]})
    assert (await webhook(home, one)).status_code == 200
    assert await _said(home, "agent:flight:line:support:direct:U1") == [(None, "message 1")]
