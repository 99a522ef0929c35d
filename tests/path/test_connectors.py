"""Connectors over HTTP: whose a channel's message is, which session it is in, and what its sender may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.errors import GatewayError
from gateway.identity.assertions import assert_sender
from gateway.identity.credentials import Credentials
from gateway.keys import channel_issuer, guest_id
from gateway.model import Requester, SessionId
from gateway.pipeline import Call
from gateway.policy.shipped import shipped
from gateway.settings import Settings
from gateway.stages.open_session import Entry
from gateway.stages.record_audit import Trail
from gateway.tools.registry import AnyOperation
from tests.channels import add_service, channel_house, link, turn, with_accounts
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House

GROUP = "agent:flight:line:support:group:C1"


@pytest_asyncio.fixture
async def home(settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture) -> AsyncIterator[House]:
    """`acme`, whose services bring LINE's messages."""
    async with channel_house(with_accounts(settings, tmp_path), clock, logs.loggers) as made:
        yield made


def _files(answer: Any) -> set[str]:
    return {one["path"] for one in answer.json()["context"]["manifest"] if one["included"]}


def _remembered(home: House, text: str) -> None:
    (home.gateway.folders.root / home.tenant / "flight" / "MEMORY.md").write_text(text, encoding="utf-8")


async def _sessions(home: House) -> set[str]:
    found = await home.gateway.stores.database.read(
        lambda connection: connection.exec_driver_sql("SELECT key FROM sessions").all()
    )
    return {str(row[0]) for row in found}


async def test_a_linked_sender_is_in_their_own_session_with_all_that_is_theirs(home: House) -> None:
    """Design sections 5 and 6: the private session opens on first use, and the turn is the person's own."""
    alice = await link(home, "alice", "U1")
    _remembered(home, "Gate changes are announced late.")

    answer = await turn(home, "U1", text="Which gate?")

    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["profile"], told["session"]["key"]) == (alice, home.private("alice"))
    assert told["session"]["private"]
    assert "MEMORY.md" in _files(answer)
    assert told["turn_token"].startswith("gwt_")
    assert answer.headers["cache-control"] == "no-store"
    messages = (await home.get("alice", f"/v1/sessions/{home.private('alice')}/messages")).json()["items"]
    assert [(one["role"], one["sender"], one["content"]) for one in messages] == [("user", alice, "Which gate?")]
    # What the runtime does with it is hers: her own session, with the agent's answer in it.
    token = {"Authorization": f"Bearer {told['turn_token']}"}
    said = await home.send(
        None,
        "POST",
        f"/v1/sessions/{home.private('alice')}/messages",
        {"role": "assistant", "content": "B12."},
        headers=token,
    )
    assert said.status_code == 201, said.text


async def test_an_unlinked_sender_is_a_guest_with_rules_and_the_shared_file_alone(home: House) -> None:
    """Design section 5: no profile, and never a default person; root MEMORY.md and daily notes stay out."""
    _remembered(home, "Secret.")
    people = await home.gateway.stores.identities.count_people(home.tenant)

    answer = await turn(home, "U9", text="Hello?")

    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["profile"], told["turn_token"]) == (None, None)
    assert told["session"] == {"key": "agent:flight:line:support:direct:U9"}
    assert _files(answer) == {"AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"}
    assert "Secret." not in told["context"]["text"]
    assert not any(one["path"].startswith("users/") for one in told["context"]["manifest"])
    facts = await home.gateway.stores.sessions.find(home.tenant, told["session"]["key"])
    assert facts is not None
    assert (facts.session.kind, facts.session.private, facts.session.owner) == ("channel", False, home.id("line"))
    page = await home.gateway.stores.transcripts.latest(home.tenant, facts.session.id, incarnation=1, after=0, limit=9)
    assert page is not None
    assert [(one.sender, one.name, one.content) for one in page] == [(None, "guest", "Hello?")]
    assert await home.gateway.stores.identities.count_people(home.tenant) == people


async def test_whoever_is_linked_later_is_themselves_from_then_on(home: House) -> None:
    """What they wrote as a guest stays where it was: it is not made theirs afterwards."""
    before = await turn(home, "U1", text="As a guest.")
    alice = await link(home, "alice", "U1")
    after = await turn(home, "U1", text="As alice.")

    assert before.json()["profile"] is None
    assert (after.json()["profile"], after.json()["session"]["key"]) == (alice, home.private("alice"))
    mine = (await home.get("alice", f"/v1/sessions/{home.private('alice')}/messages")).json()["items"]
    assert [one["content"] for one in mine] == ["As alice."]
    missing = await home.get("alice", "/v1/sessions/agent:flight:line:support:direct:U1")
    assert missing.status_code == 404


async def test_the_same_sender_id_on_two_accounts_or_channels_is_somebody_else_each(home: House) -> None:
    """Design section 5: "Ids of two accounts or apps never collide"."""
    alice = await link(home, "alice", "U1")
    bob = await link(home, "bob", "U1", account="sales")

    here = await turn(home, "U1")
    there = await turn(home, "U1", who="sales", account="sales")
    elsewhere = await turn(home, "U1", channel="viber")

    assert [one.json()["profile"] for one in (here, there, elsewhere)] == [alice, bob, None]
    assert elsewhere.json()["session"]["key"] == "agent:flight:viber:support:direct:U1"


async def test_a_connector_acts_for_its_own_account_and_nobody_else_connects(home: House) -> None:
    """Another's account is missing; a service or a person without the role is told that the function is not theirs."""
    await link(home, "alice", "U1")
    await add_service(home, "printer")
    await add_service(home, "spare", "connector")
    before = await _sessions(home)

    assert (await turn(home, "U1")).status_code == 200
    opened = await _sessions(home)
    for who, channel, account in (
        ("sales", "line", "support"),
        ("line", "line", "sales"),
        ("spare", "line", "support"),
    ):
        denied = await turn(home, "U1", who=who, channel=channel, account=account, text="x")
        nothing = await turn(home, "U1", who=who, channel=channel, account="nothing", text="x")
        assert denied.status_code == nothing.status_code == 404
        assert {**denied.json(), "request_id": ""} == {**nothing.json(), "request_id": ""}
    for who in ("printer", "alice", "dana", "olga"):
        refused = await turn(home, "U1", who=who, text="x")
        assert refused.status_code == 403, (who, refused.text)
    assert (await turn(home, "U1", who=None, text="x")).status_code == 401  # type: ignore[arg-type]  # nobody
    assert await _sessions(home) == opened == before | {home.private("alice")}
    records = await home.audit(kind="decision", effect="deny", action="connect")
    assert {(one.record.code) for one in records} == {"target_missing", "function_lacking"}
    assert "line:support" in {one.record.target for one in records}


async def test_a_token_without_the_scope_connects_nothing_and_one_without_memory_reads_none(home: House) -> None:
    """A sender has no more than the service's credential: an intersection, and never the person's own scopes."""
    await link(home, "alice", "U1")
    home.secrets["admin only"] = await home.token("line", scopes=["admin", "session", "memory"])
    home.secrets["no memory"] = await home.token("line", scopes=["gateway", "session"])

    assert (await turn(home, "U1", who="admin only")).status_code == 403
    answer = await turn(home, "U1", who="no memory")
    assert answer.status_code == 200
    assert _files(answer) == set()
    assert (await turn(home, "U1")).json()["context"]["text"]


async def test_a_turn_leaves_two_trails_under_one_request_id(home: House) -> None:
    """The service's and the sender's; the sender's names both."""
    alice = await link(home, "alice", "U1")
    answer = await turn(home, "U1", text="Hello")

    records = [
        one.record for one in await home.audit(kind="access") if one.record.request == answer.headers["x-request-id"]
    ]
    assert [(one.operation, one.profile) for one in records] == [
        ("connectors.turn", home.id("line")),
        ("sessions.create", alice),
        ("messages.post", alice),
        ("context.assemble", alice),
        ("sessions.show", alice),
    ]
    assert records[1].principal == f"channel:{home.id('line')}#line:support#U1"
    connected = (await home.audit(kind="decision", action="connect"))[-1].record
    assert connected.details == {"sender": "U1", "chat": "direct:U1"}


async def test_a_group_is_joined_by_speaking_and_read_from_then_on(home: House) -> None:
    """Design section 6: "who joins later reads from their joining on"; "Leaving a group ends access"."""
    await link(home, "alice", "U1")
    await link(home, "bob", "U2")
    _remembered(home, "Secret.")

    first = await turn(home, "U1", "group", "C1", "Before bob.")
    assert first.json()["session"]["key"] == GROUP
    assert set(first.json()["session"]["participants"]) == {home.id("line"), home.id("alice")}
    assert _files(first) == {"AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md"}
    assert (await home.get("bob", f"/v1/sessions/{GROUP}/messages")).status_code == 404
    await turn(home, "U7", "group", "C1", "A guest.")
    await turn(home, "U2", "group", "C1", "Bob is here.")

    def said(answer: Any) -> list[tuple[str, str | None]]:
        return [(one["content"], one["sender"]) for one in answer.json()["items"]]

    assert said(await home.get("bob", f"/v1/sessions/{GROUP}/messages")) == [("Bob is here.", home.id("bob"))]
    everything = said(await home.get("alice", f"/v1/sessions/{GROUP}/messages"))
    assert everything == [("Before bob.", home.id("alice")), ("A guest.", None), ("Bob is here.", home.id("bob"))]

    left = await home.post(
        "line",
        "/v1/connectors/line/members",
        {"account": "support", "chat": {"kind": "group", "id": "C1"}, "left": ["U1"]},
    )
    assert left.status_code == 204, left.text
    assert (await home.get("alice", f"/v1/sessions/{GROUP}/messages")).status_code == 404
    assert said(await home.get("bob", f"/v1/sessions/{GROUP}/messages"))
    again = await turn(home, "U1", "group", "C1", "Back.")
    assert again.status_code == 200
    assert said(await home.get("alice", f"/v1/sessions/{GROUP}/messages")) == [("Back.", home.id("alice"))]


async def _members(home: House, who: str = "line", **body: Any) -> int:
    chat = {"account": "support", "chat": {"kind": "group", "id": "C1"}}
    return (await home.post(who, "/v1/connectors/line/members", {**chat, **body})).status_code


async def test_who_is_in_a_chat_is_what_the_channel_says(home: House) -> None:
    """Joining, leaving, and the channel's own leaving; what somebody who left had owned is the connector's again."""
    alice, bob = await link(home, "alice", "U1"), await link(home, "bob", "U2")
    assert await _members(home, left=["U1"]) == 204  # nobody has spoken there: nothing to leave
    assert GROUP not in await _sessions(home)

    assert await _members(home, joined=["U1", "U2", "U3"]) == 204
    listed = (await home.get("alice", f"/v1/sessions/{GROUP}")).json()
    assert set(listed["participants"]) == {home.id("line"), alice, bob}
    await home.send("alice", "PUT", f"/v1/sessions/{GROUP}/owner", {"profile": alice})

    assert await _members(home, left=["U1"]) == 204
    assert (await home.get("alice", f"/v1/sessions/{GROUP}")).status_code == 404
    told = (await home.get("bob", f"/v1/sessions/{GROUP}")).json()
    assert (told["owner"], set(told["participants"])) == (home.id("line"), {home.id("line"), bob})
    items = (await home.get("alice", "/v1/sessions")).json()["items"]
    assert GROUP not in {one["key"] for one in items}

    assert await _members(home, left=["U7", "U1"]) == 204  # neither takes part
    assert await _members(home, who="sales", ended=True) == 404
    assert (await home.get("bob", f"/v1/sessions/{GROUP}")).status_code == 200
    assert await _members(home, ended=True) == 204
    assert (await home.get("bob", f"/v1/sessions/{GROUP}")).status_code == 404


@pytest.mark.parametrize("word", ["group", "room", "channel"])
async def test_a_chat_of_several_is_never_somebodys_own(home: House, word: str) -> None:
    """A connector that calls a group `direct` once must not have the group told what is a person's own."""
    alice = await link(home, "alice", "U1")
    shared = f"agent:flight:line:support:{word}:C1"
    assert (await turn(home, "U9", word, "C1", "Hello all")).status_code == 200

    claimed = await turn(home, "U1", "direct", "C1", "What did I ask you?")

    assert claimed.json()["session"]["key"] == shared
    kinds = {one["kind"] for one in claimed.json()["context"]["manifest"] if one["included"]}
    assert kinds == {"rules", "shared"}
    assert home.private("alice") not in await _sessions(home)
    assert alice in claimed.json()["session"]["participants"]
    assert (await turn(home, "U1", "direct", text="In private")).json()["session"]["key"] == home.private("alice")


async def test_two_who_open_a_chat_at_once_are_in_one_session(home: House) -> None:
    """One wins, and both are answered."""
    await link(home, "alice", "U1")
    await link(home, "bob", "U2")

    answers = await asyncio.gather(
        *(turn(home, sender, "group", "C1", f"{sender} {n}") for n in range(4) for sender in ("U1", "U2", "U3")),
        *(turn(home, "U1", text="mine") for _ in range(3)),
    )
    assert {answer.status_code for answer in answers} == {200}
    assert len([key for key in await _sessions(home) if key == GROUP]) == 1
    facts = await home.gateway.stores.sessions.find(home.tenant, GROUP)
    assert facts is not None
    assert {one.profile for one in facts.participants} == {home.id(name) for name in ("line", "alice", "bob")}


@pytest.mark.parametrize(
    ("kind", "stored"), [("group", "group"), ("channel", "channel"), ("room", "group"), ("direct", "channel")]
)
async def test_no_chat_of_a_guest_is_private_and_a_word_nobody_knows_is_a_group(
    home: House, kind: str, stored: str
) -> None:
    """Design section 2; two kinds of chat with one id are two sessions."""
    answer = await turn(home, "U9", kind, "X1")
    facts = await home.gateway.stores.sessions.find(home.tenant, answer.json()["session"]["key"])
    assert facts is not None
    assert (facts.session.kind, facts.session.private) == (stored, False)
    assert facts.session.key == f"agent:flight:line:support:{kind}:{'U9' if kind == 'direct' else 'X1'}"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"sender": ""}, "sender"),
        ({"sender": "U1\n"}, "sender"),
        ({"sender": "x" * 201}, "sender"),
        ({"chat": {"kind": "a:b", "id": "C1"}}, "chat.kind"),
        ({"chat": {"kind": "group", "id": " C1"}}, "chat.id"),
        ({"text": ""}, "text"),
        ({"profile": "prf_x"}, "profile"),
    ],
)
async def test_a_fault_names_its_field_and_changes_nothing(home: House, changed: dict[str, Any], field: str) -> None:
    """Nothing that a connector sends is a key, and nothing names a person."""
    body = {"account": "support", "sender": "U1", "chat": {"kind": "group", "id": "C1"}, **changed}
    answer = await home.post("line", "/v1/connectors/line/turns", body)
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == [field]
    assert await _sessions(home) == set()


async def test_a_disabled_person_or_service_speaks_nowhere(home: House) -> None:
    """Fail closed: not as a guest either, and a connector without an active profile brings nobody."""
    await link(home, "alice", "U1")
    assert (await turn(home, "U1")).status_code == 200
    await home.send("olga", "DELETE", f"/v1/admin/people/{home.id('alice')}")

    for kind in ("direct", "group"):
        answer = await turn(home, "U1", kind, "C1", "x")
        assert answer.status_code == 404
    records = await home.audit(kind="access", code="profile_disabled")
    assert records
    facts = await home.gateway.stores.sessions.find(home.tenant, GROUP)
    assert facts is not None
    assert [one.profile for one in facts.participants] == [home.id("line")]
    await home.send("olga", "DELETE", f"/v1/admin/people/{home.id('line')}")
    assert (await turn(home, "U9", text="x")).status_code == 401


async def test_an_archived_chat_takes_no_message(home: House) -> None:
    """Somebody who takes part has ended it: a conflict, and nothing is posted."""
    await link(home, "alice", "U1")
    await turn(home, "U1", "group", "C1", "One.")
    await home.post("alice", f"/v1/sessions/{GROUP}/archive")

    assert (await turn(home, "U1", "group", "C1", "Two.")).status_code == 409
    assert (await turn(home, "U9", "group", "C1", "Three.")).status_code == 409
    items = (await home.get("alice", f"/v1/sessions/{GROUP}/messages")).json()["items"]
    assert [one["content"] for one in items] == ["One."]
    too_long = await turn(home, "U9", "group", "C2", "x" * 200_001)
    assert too_long.status_code == 422


async def test_a_chat_that_goes_while_something_comes_is_missing(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody deletes the group's session between finding it and writing: no message is acknowledged that is not
    there, and nobody takes part in what is gone. The next one opens it anew."""
    await link(home, "alice", "U1")
    await link(home, "bob", "U2")
    await turn(home, "U1", "group", "C1", "x")
    store = home.gateway.stores.sessions
    join, append = store.join, home.gateway.stores.transcripts.append

    async def late(*arguments: Any) -> Any:
        await home.send("alice", "DELETE", f"/v1/sessions/{GROUP}")
        return await (join if len(arguments) > 2 else append)(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(store, "join", late)
        assert (await turn(home, "U2", "group", "C1", "y")).status_code == 404
    await turn(home, "U1", "group", "C1", "x")
    with monkeypatch.context() as patch:
        patch.setattr(home.gateway.stores.transcripts, "append", late)
        assert (await turn(home, "U9", "group", "C1", "z")).status_code == 404
    assert GROUP not in await _sessions(home)
    assert (await turn(home, "U9", "group", "C1", "z")).status_code == 200


async def test_a_chat_whose_key_was_taken_meanwhile_is_found(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another replica opened it a moment ago; one that can't be opened at all is told as it is."""
    await turn(home, "U9", "group", "C1", "first")
    store, find = home.gateway.stores.sessions, home.gateway.stores.sessions.find
    home.gateway.pipeline.open_session._sessions.forget()
    missing = [True]

    async def not_yet(tenant: Any, reference: str) -> Any:
        return None if missing and missing.pop() else await find(tenant, reference)

    monkeypatch.setattr(store, "find", not_yet)
    assert (await turn(home, "U9", "group", "C1", "second")).status_code == 200

    async def never(_tenant: Any, _reference: str) -> Any:
        return None

    home.gateway.pipeline.open_session._sessions.forget()
    monkeypatch.setattr(store, "find", never)
    assert (await turn(home, "U9", "group", "C1", "third")).status_code == 409


async def test_somebody_who_may_speak_and_not_look_is_told_the_key_alone(home: House) -> None:
    """What is told of the session is what its sender may see."""
    await link(home, "alice", "U1")
    await home.publish(shipped("default.csv") + "p, role:member, *, session/*, all, any, *, status, deny\n")
    answer = await turn(home, "U1", text="Hello")
    assert answer.status_code == 200
    assert answer.json()["session"] == {"key": home.private("alice")}


async def test_a_sender_is_linked_and_unlinked_over_the_interface(home: House) -> None:
    """By `{channel, account, sender}`, shown readably; by an owner alone; and not half one and half the other."""
    path = f"/v1/admin/people/{home.id('alice')}/identities"
    sender = {"channel": "line", "account": "support", "sender": "U1"}

    assert (await home.post("erin", path, sender)).status_code == 403
    assert (await turn(home, "U1")).json()["profile"] is None
    linked = await home.post("olga", path, sender)
    assert linked.status_code == 200, linked.text
    shown = {**sender, "issuer": channel_issuer("line", "support"), "subject": "U1"}
    assert linked.json()["identities"] == [shown]
    assert (await turn(home, "U1")).json()["profile"] == home.id("alice")
    taken = await home.post("olga", f"/v1/admin/people/{home.id('bob')}/identities", sender)
    assert taken.status_code == 409
    for body in (
        {**sender, "issuer": "https://id.example.com"},
        {**sender, "sender": None},
        {"channel": "line", "sender": "U2"},
        {"issuer": channel_issuer("line", "support"), "subject": "U2"},
        {"issuer": "https://id.example.com"},
        {**sender, "account": "a:b"},
        {},
    ):
        assert (await home.post("olga", path, body)).status_code == 422, body
    records = [one.record for one in await home.audit(kind="decision")]
    record = next(one for one in records if one.operation == "people.link")
    touched = {"raises": True, "touches": [home.id("alice")]}
    assert record.details == {"identity": f"{channel_issuer('line', 'support')}#U1", **touched}

    assert (await home.send("olga", "DELETE", path, sender)).status_code == 204
    assert (await home.send("olga", "DELETE", path, sender)).status_code == 404
    assert (await turn(home, "U1")).json()["profile"] is None


# ── guests ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _as_guest(home: House, place: SessionId) -> Credentials:
    line = home.people["line"]
    principal = await home.gateway.pipeline.authenticate(Credentials.bearer(home.secrets["line"]))
    connector = Requester(tenant=home.tenant, profile=line, principal=principal, epoch=1)
    return Credentials(asserted=assert_sender(connector, channel="line", account="support", sender="U9", place=place))


async def test_a_guest_can_run_nothing_of_the_catalogue_but_the_context_of_where_they_are(home: House) -> None:
    """Design section 5: "may load rules and shared USER.md and nothing else"; every operation is walked."""
    await link(home, "alice", "U1")
    await turn(home, "U1", "group", "C1", "Secret of the group.")
    key = (await turn(home, "U9", "group", "C1")).json()["session"]["key"]
    facts = await home.gateway.stores.sessions.find(home.tenant, key)
    assert facts is not None
    credentials = await _as_guest(home, facts.session.id)
    ran, refused = [], set()
    for operation in home.gateway.catalogue.all():
        for inside in (True, False):
            if operation.assembles and not inside:
                continue  # it has no route outside a session
            status = await _run(home, credentials, operation, key if inside else None)
            refused.add(status)
            if status == 200:
                ran.append((operation.name, inside))
    assert ran == [("context.assemble", True)]
    assert refused == {200, 403}


async def _run(home: House, credentials: Credentials, operation: AnyOperation, inside: str | None) -> int:
    call = Call.of(credentials, operation, _Everything(), Entry(inside) if inside else None)
    try:
        await home.gateway.pipeline.run(call, Trail("req_1", "test", operation.name))
    except GatewayError as error:
        return error.status
    return 200


class _Everything:
    """Arguments that any operation finds something in, so that none fails for a reason other than the policy."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __bool__(self) -> bool:
        return False


async def test_a_guest_is_nowhere_but_in_the_chat_they_spoke_in(home: House) -> None:
    """The row for guests opens no other group: not of the channel, nor of people, nor a person's own session."""
    await link(home, "alice", "U1")
    await turn(home, "U1", "group", "C1", "x")
    await turn(home, "U1", text="x")
    team = await home.open("alice", "group", participants=[home.id("bob")])
    here = (await turn(home, "U9", "group", "C2")).json()["session"]["key"]
    facts = await home.gateway.stores.sessions.find(home.tenant, here)
    assert facts is not None
    credentials = await _as_guest(home, facts.session.id)
    context = home.gateway.catalogue.context

    assert [await _run(home, credentials, context, key) for key in (here, GROUP, team, home.private("alice"))] == [
        200,
        404,
        404,
        404,
    ]
    guest = guest_id(home.tenant, channel_issuer("line", "support"), "U9")
    denied = [one.record for one in await home.audit(kind="decision", effect="deny", action="enter")]
    assert {(one.profile, one.code) for one in denied} == {(guest, "no_matching_row")}
    assert len(denied) == 3


async def test_a_link_that_changes_while_a_turn_is_brought_opens_nothing(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connector's half took alice for alice; by the sender's half they are a guest, and the other way about."""
    alice = await link(home, "alice", "U1")
    assert (await turn(home, "U1", text="x")).status_code == 200
    identities = home.gateway.stores.identities
    linked = identities.profile_of
    asked: list[Any] = []
    sender = {"channel": "line", "account": "support", "sender": "U1"}
    path = f"/v1/admin/people/{alice}/identities"

    async def changing(tenant: Any, issuer: str, subject: str) -> Any:
        found = await linked(tenant, issuer, subject)
        if not asked:
            asked.append(found)
            answer = await home.send("olga", "POST" if found is None else "DELETE", path, sender)
            assert answer.is_success, answer.text
        return found

    monkeypatch.setattr(identities, "profile_of", changing)
    unlinked = await turn(home, "U1", text="As whom?")
    assert unlinked.status_code == 404
    asked.clear()
    linked_now = await turn(home, "U1", "group", "C1")
    assert linked_now.status_code == 404
    items = (await home.get("alice", f"/v1/sessions/{home.private('alice')}/messages")).json()["items"]
    assert [one["content"] for one in items] == ["x"]
    assert (await turn(home, "U1", "group", "C1")).json()["profile"] == alice


# ── merges ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_merge_takes_channel_links_and_chats_along(home: House) -> None:
    """Design section 5, "merge": "identities, emails and channel links move"; and captured authority fails closed."""
    alice = home.id("alice")
    old = (await home.add("alicia", "member")).id
    await link(home, "alicia", "U1")
    first = await turn(home, "U1", "group", "C1", "As alicia.")
    assert first.json()["profile"] == old

    merged = await home.post("olga", f"/v1/admin/people/{old}/merge", {"into": alice})
    assert merged.status_code == 200, merged.text

    assert (await turn(home, "U1", "group", "C1", "As alice.")).json()["profile"] == alice
    said = (await home.get("alice", f"/v1/sessions/{GROUP}/messages")).json()["items"]
    assert said[-1]["content"] == "As alice."
    mine = await turn(home, "U1", text="To myself.")
    assert (mine.json()["profile"], mine.json()["session"]["key"]) == (alice, home.private("alice"))
    held = {"Authorization": f"Bearer {first.json()['turn_token']}"}
    gone = await home.send(None, "POST", f"/v1/sessions/{GROUP}/context", {}, headers=held)
    assert gone.status_code == 401
    assert await _members(home, left=["U1"]) == 204
    assert (await home.get("alice", f"/v1/sessions/{GROUP}")).status_code == 404
