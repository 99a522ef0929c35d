"""Turns the organisation of `tests/house.py` into one with accounts on channels and the services that bring them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson

from gateway.keys import channel_issuer
from gateway.logs import Loggers
from gateway.model import ANY_AGENT, Identity, Profile, ProfileId, RoleAssignment
from gateway.ports import Clock
from gateway.settings import ConnectorAccount, Connectors, Settings
from tests.cast import profile_id
from tests.house import House, house

SECRETS = {"support": "0123456789abcdef0123456789abcdef", "sales": "fedcba9876543210fedcba9876543210"}
BOT = "Ubot"


def with_accounts(settings: Settings, folder: Path, **more: Any) -> Settings:
    """Two accounts on LINE with a service each, and one on a channel with a connector of its own."""
    accounts = []
    for account, service in (("support", "line"), ("sales", "sales")):
        secret = folder / f"{account}.secret"
        secret.write_text(f"{SECRETS[account]}\n", encoding="utf-8")
        entry = {"channel": "line", "account": account, "service": profile_id(service), "secret_file": secret, **more}
        if account == "support":
            entry["destination"] = BOT
        accounts.append(ConnectorAccount(tenant="acme", agent="flight", **entry))
    accounts.append(
        ConnectorAccount(channel="viber", account="support", tenant="acme", agent="flight", service=profile_id("line"))
    )
    return settings.model_copy(update={"connectors": Connectors(accounts=tuple(accounts))})


async def add_service(home: House, name: str, *roles: str) -> Profile:
    """A service under the id that the settings name, with a token."""
    profile = Profile(
        id=profile_id(name),
        tenant=home.tenant,
        name=name,
        kind="service",
        roles=tuple(RoleAssignment(role=role, agent=ANY_AGENT) for role in roles),
        created_at=home.gateway.clock.now(),
    )
    await home.gateway.stores.identities.add_profile(profile)
    home.people[name] = profile
    home.secrets[name] = await home.token(name)
    return profile


@asynccontextmanager
async def channel_house(settings: Settings, clock: Clock, loggers: Loggers) -> AsyncIterator[House]:
    """`acme` with the services `line` and `sales`, which hold the role connector."""
    async with house(settings, clock, loggers) as home:
        await add_service(home, "line", "connector")
        await add_service(home, "sales", "connector")
        yield home


async def link(home: House, name: str, sender: str, *, channel: str = "line", account: str = "support") -> ProfileId:
    """Links a sender to somebody, as an owner does."""
    identity = Identity(issuer=channel_issuer(channel, account), subject=sender, profile=home.id(name))
    await home.gateway.stores.identities.link(home.tenant, identity, home.gateway.clock.now())
    return home.id(name)


async def turn(
    home: House,
    sender: str,
    kind: str = "direct",
    chat: str | None = None,
    text: str | None = None,
    *,
    who: str = "line",
    channel: str = "line",
    account: str = "support",
) -> httpx2.Response:
    """What a connector brings."""
    body: dict[str, Any] = {"account": account, "sender": sender, "chat": {"kind": kind, "id": chat or sender}}
    if text is not None:
        body["text"] = text
    return await home.post(who, f"/v1/connectors/{channel}/turns", body)


def event(number: int, at_ms: int, **fields: Any) -> dict[str, Any]:
    """An event as LINE sends it; a text of U1 in a chat of their own where `fields` say nothing else."""
    return {
        "type": "message",
        "mode": "active",
        "timestamp": at_ms,
        "webhookEventId": f"01EVENT{number:019d}",
        "deliveryContext": {"isRedelivery": False},
        "source": {"type": "user", "userId": "U1"},
        "replyToken": f"reply-{number}",
        "message": {"type": "text", "id": str(number), "text": f"message {number}"},
        **fields,
    }


def signed(body: bytes, account: str = "support") -> str:
    """What LINE would sign `body` with."""
    digest = hmac.new(SECRETS[account].encode(), body, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


async def webhook(home: House, *events: dict[str, Any], account: str = "support") -> httpx2.Response:
    """A delivery of LINE."""
    body = orjson.dumps({"destination": BOT, "events": list(events)})
    headers = {"X-Line-Signature": signed(body, account)}
    return await home.send(None, "POST", f"/v1/connectors/line/{account}/webhook", content=body, headers=headers)
