"""What needs no credential, what connectors bring, and requests that are wrong in ways that could show something."""

from __future__ import annotations

import base64
import hashlib
import hmac

import orjson

from gateway.leak_test.cast import OURS
from gateway.leak_test.driver import Driver, Probe, in_path
from gateway.leak_test.driving.targets import few_sessions, missing_session, victims
from gateway.leak_test.markers import Sort
from gateway.leak_test.planting import turn
from gateway.leak_test.scratch import ACCOUNT, CHANNEL, LINE_ACCOUNT
from gateway.leak_test.world import Caller
from gateway.model import Action

_WORDS = {"issuer": "work", "account": LINE_ACCOUNT}
_LINE = "POST /v1/connectors/line/{account}/webhook"


async def public(driver: Driver, caller: Caller, row: str) -> None:
    """A public route, with and without a credential."""
    method, _, path = row.partition(" ")
    for word, value in _WORDS.items():
        path = path.replace(f"{{{word}}}", value)
    await driver.send(Probe(caller=caller, row=row, method=method, target=path, shows=_OWN_SIGN_IN))


_OWN_SIGN_IN = {Sort.EMAIL: Action.READ}


# ── connectors ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def turns(driver: Driver, caller: Caller) -> None:
    """`POST /v1/connectors/{channel}/turns`. What a sender's turn may hold is asked of the sender: see `senders`."""
    if caller.label == "connector":
        await _connect(driver, caller, "turns", {"account": "none"})
        return  # what it brings of others is theirs
    await _connect(driver, caller, "turns", turn("U-nobody", "hello", chat="C-new"))
    for victim in victims(driver.world):
        await _connect(driver, caller, "turns", turn(victim.id, None, kind="direct"))
    await _connect(driver, caller, "turns", turn("U-alice", None, kind="direct"))
    await _connect(driver, caller, "turns", turn("U-alice", None))


async def members(driver: Driver, caller: Caller) -> None:
    """`POST /v1/connectors/{channel}/members` of a chat that is nobody's yet."""
    body: dict[str, object] = {
        "account": ACCOUNT,
        "chat": {"kind": "group", "id": "C-new"},
        "joined": ["U-nobody"],
        "left": ["U-nobody"],
    }
    await _connect(driver, caller, "members", body)
    await _connect(driver, caller, "members", {"account": ACCOUNT, "chat": {"kind": "group", "id": "C-newer"},
                                               "ended": True})  # fmt: skip


async def _connect(driver: Driver, caller: Caller, what: str, body: dict[str, object]) -> None:
    row, target = f"POST /v1/connectors/{{channel}}/{what}", f"/v1/connectors/{CHANNEL}/{what}"
    await driver.send(Probe(caller=caller, row=row, method="POST", target=target, body=body))


async def senders(driver: Driver, caller: Caller) -> None:
    """The turn of a sender whom the connector brings: a guest's, or that of somebody who is linked."""
    chat = driver.world.chat
    if caller.place is None or chat is None:
        return
    for kind, said in (("group", "hello"), ("room", None), ("direct", None)):
        await driver.send(
            Probe(
                caller=caller,
                row="POST /v1/connectors/{channel}/turns",
                method="POST",
                target=f"/v1/connectors/{CHANNEL}/turns",
                body=turn("U-guest", said, kind=kind),
                origin=chat,
                shows={Sort.FILE: Action.LOAD},
            )
        )


async def webhook(driver: Driver, caller: Caller, secret: bytes) -> None:
    """LINE's webhook: unsigned, wrongly signed, and signed, from a guest in a group."""
    instant = int(driver.world.now.timestamp() * 1000)
    event = {
        "type": "message",
        "timestamp": instant,
        "webhookEventId": f"leak-test-{caller.label}",
        "mode": "active",
        "source": {"type": "group", "groupId": "G-guests", "userId": "U-guest"},
        "message": {"type": "text", "id": "1", "text": "hello"},
    }
    body = orjson.dumps({"destination": "U-bot", "events": [event]})
    right = base64.b64encode(hmac.new(secret, body, hashlib.sha256).digest())
    for signature in ((), ((b"x-line-signature", b"wrong"),), ((b"x-line-signature", right),)):
        target = f"/v1/connectors/line/{LINE_ACCOUNT}/webhook"
        await driver.send(Probe(caller=caller, row=_LINE, method="POST", target=target, body=body, headers=signature))


# ── requests that are wrong ──────────────────────────────────────────────────────────────────────────────────────────


async def faults(driver: Driver, caller: Caller) -> None:
    """Wrong methods, bodies, headers and paths about everybody's sessions: a fault may not tell that there is one."""
    for session in few_sessions(driver.world)[::4]:
        known = driver.expectation.knows_of(caller, None, session) or driver.expectation.enters(caller, session)
        for method, more, body, headers in _FAULTS:
            path = f"/v1/sessions/{{session}}{more}"
            await driver.send(
                Probe(
                    caller=caller,
                    row=f"{method} {path} (at fault)",
                    method=method,
                    target=path.replace("{session}", in_path(session.key)),
                    body=body,
                    headers=headers,
                    shows={Sort.TITLE: Action.STATUS} if method == "HEAD" else {},
                    twin=None if known else missing_session(path, session, session.key, body),
                )
            )


_FAULTS: tuple[tuple[str, str, object, tuple[tuple[bytes, bytes], ...]], ...] = (
    ("OPTIONS", "", None, ()),
    ("HEAD", "", None, ()),
    ("GET", "/", None, ()),
    ("GET", "/messages?limit=0", None, ()),
    ("GET", "/messages?cursor=nonsense", None, ()),
    ("GET", "/messages?limit=1&limit=2", None, ()),
    ("GET", "?x=1", None, ()),
    ("GET", "", None, ((b"gateway-min-epoch", b"soon"),)),
    ("GET", "", None, ((b"gateway-turn-tainted", b"true"),)),
    ("POST", "/messages", b"{", ()),
    ("POST", "/messages", {"role": "system", "content": "hello"}, ()),
    ("POST", "/tools/no_such_tool", {}, ()),
    ("POST", "/tools/sessions_history", {"sessionKey": 1}, ()),
    ("POST", "/context", {"turn": 1}, ()),
)


async def other_tenants(driver: Driver, caller: Caller) -> None:
    """Nothing says which organisation to look in; whoever tries finds their own."""
    headers = ((b"x-tenant", OURS.encode()), (b"gateway-tenant", OURS.encode()))
    row = "GET /v1/sessions (with another tenant's name)"
    probe = Probe(
        caller=caller,
        row=row,
        method="GET",
        target="/v1/sessions?limit=200",
        headers=headers,
        shows={Sort.TITLE: Action.LIST},
    )
    await driver.send(probe)
