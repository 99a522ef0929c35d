"""What the agent's runtime is told of LINE's messages, after LINE was answered (docs: identity/channels)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from gateway.errors import Unavailable
from gateway.identity.channel_accounts import Delivery
from gateway.operations.deliveries import Deliveries, Job
from gateway.settings import Settings
from tests.channels import channel_house, event, link, webhook, with_accounts
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import House
from tests.runtime import LocalRuntime

SHARED = "what the gateway and the runtime share"


@pytest_asyncio.fixture
async def runtime() -> AsyncIterator[LocalRuntime]:
    """A runtime on this machine."""
    async with LocalRuntime() as running:
        yield running


@pytest_asyncio.fixture
async def home(
    settings: Settings, tmp_path: Path, clock: SettableClock, logs: LogCapture, runtime: LocalRuntime
) -> AsyncIterator[House]:
    """`acme`, whose runtime is told of LINE's messages."""
    secret = tmp_path / "shared.secret"
    secret.write_text(SHARED, encoding="utf-8")
    told = with_accounts(settings, tmp_path, deliver_to=runtime.url, deliver_secret_file=secret)
    async with channel_house(told, clock, logs.loggers) as made:
        yield made


def _now(home: House) -> int:
    return int(home.gateway.clock.now().timestamp() * 1000)


async def test_a_runtime_is_told_who_said_what_and_with_what_context(home: House, runtime: LocalRuntime) -> None:
    """Signed over the raw body; with a turn token that is good for that person's session, and none for a guest."""
    alice = await link(home, "alice", "U1")
    guest = {"type": "user", "userId": "U9"}
    assert (await webhook(home, event(1, _now(home)), event(2, _now(home), source=guest))).status_code == 200
    async with asyncio.timeout(5):
        await home.gateway.deliveries.done()

    told = {}
    for headers, body in runtime.received:
        digest = hmac.new(SHARED.encode(), body, hashlib.sha256).hexdigest()
        assert headers["gateway-signature"] == f"sha256={digest}"
        one = orjson.loads(body)
        told[one["event"]["sender"]] = one
    mine, theirs = told["U1"], told["U9"]
    assert (mine["profile"], mine["session"]["key"]) == (alice, home.private("alice"))
    assert (mine["event"]["text"], mine["event"]["reply_token"]) == ("message 1", "reply-1")
    assert mine["context"]["text"]
    assert (theirs["profile"], theirs["turn_token"]) == (None, None)
    token = {"Authorization": f"Bearer {mine['turn_token']}"}
    path = f"/v1/sessions/{home.private('alice')}/messages"
    answer = await home.send(None, "POST", path, {"role": "assistant", "content": "B12."}, headers=token)
    assert answer.status_code == 201, answer.text
    assert 'gateway_deliveries_total{outcome="sent"} 2.0' in home.gateway.metrics.text().decode()


@pytest.mark.parametrize("ends", ["the service", "the link", "the person"])
async def test_a_turn_token_of_a_message_ends_with_what_it_came_from(
    home: House, runtime: LocalRuntime, ends: str
) -> None:
    """The webhook's service, the sender's link and their profile: without one of them it is good for nothing."""
    await link(home, "alice", "U1")
    await webhook(home, event(1, _now(home)))
    async with asyncio.timeout(5):
        await home.gateway.deliveries.done()
    token = {"Authorization": f"Bearer {orjson.loads(runtime.received[0][1])['turn_token']}"}
    path = f"/v1/sessions/{home.private('alice')}/messages"
    said = {"role": "assistant", "content": "B12."}
    assert (await home.send(None, "POST", path, said, headers=token)).status_code == 201

    people = "/v1/admin/people"
    sender = {"channel": "line", "account": "support", "sender": "U1"}
    ended = {
        "the service": lambda: home.send("olga", "DELETE", f"{people}/{home.id('line')}"),
        "the link": lambda: home.send("olga", "DELETE", f"{people}/{home.id('alice')}/identities", sender),
        "the person": lambda: home.send("olga", "DELETE", f"{people}/{home.id('alice')}"),
    }
    assert (await ended[ends]()).status_code == 204
    assert (await home.send(None, "POST", path, said, headers=token)).status_code == 401


async def test_nobody_is_told_twice_nor_of_what_is_anothers_to_answer(home: House, runtime: LocalRuntime) -> None:
    """A redelivery, an event in standby, and one that nobody said anything in."""
    one = event(1, _now(home))
    joined = {"members": [{"type": "user", "userId": "U3"}]}
    group = {"type": "group", "groupId": "C1"}
    for _ in range(2):
        assert (await webhook(home, one)).status_code == 200
    await webhook(home, event(2, _now(home), mode="standby"))
    await webhook(home, event(3, _now(home), type="memberJoined", source=group, joined=joined, message=None))
    async with asyncio.timeout(5):
        await home.gateway.deliveries.done()
    assert [orjson.loads(body)["event"]["text"] for _, body in runtime.received] == ["message 1"]


async def test_a_sender_who_was_disabled_in_between_is_told_to_nobody(
    home: House, runtime: LocalRuntime, logs: LogCapture
) -> None:
    """Their turn is decided when it begins, not when the message came."""
    await link(home, "alice", "U1")
    disabled = asyncio.Event()

    async def waits() -> bytes:
        await disabled.wait()
        raise Unavailable("Only here to hold up the next one of the session.")

    account = Delivery(url=runtime.url, secret=b"shared")
    home.gateway.deliveries.offer(Job(home.private("alice"), "line:support", account, waits))
    await webhook(home, event(1, _now(home)))
    await home.send("olga", "DELETE", f"/v1/admin/people/{home.id('alice')}")
    disabled.set()
    async with asyncio.timeout(5):
        await home.gateway.deliveries.done()
    assert runtime.received == []
    refused = [line["code"] for line in logs.lines if line["event"] == "delivery_refused"]
    assert refused == ["unavailable", "not_found"]


class Recorder:
    """A sender that arrives as often as it is told to."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[bytes] = []

    async def send(self, _delivery: Delivery, body: bytes) -> bool:
        """The next answer."""
        self.sent.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _job(text: bytes, session: str = "a") -> Job:
    async def body() -> bytes:
        return text

    return Job(session, "line:support", Delivery(url="https://runtime.test", secret=b"s"), body)


async def _made(logs: LogCapture, sender: Recorder, *jobs: Job, **more: Any) -> list[str]:
    outcomes: list[str] = []
    async with Deliveries(sender, logs.loggers("deliveries"), outcomes.append, waits=(0, 0), **more) as deliveries:
        for job in jobs:
            deliveries.offer(job)
        async with asyncio.timeout(5):
            await deliveries.done()
    return outcomes


async def test_a_delivery_is_tried_a_few_times_and_never_for_ever(logs: LogCapture) -> None:
    """A failure is logged and counted, and the next one of the session goes its way."""
    sender = Recorder(False, True, False, False, False, OSError("a fault of ours"), True)
    outcomes = await _made(logs, sender, *(_job(text) for text in (b"1", b"2", b"3", b"4")))

    assert sender.sent == [b"1", b"1", b"2", b"2", b"2", b"3", b"4"]
    assert outcomes == ["sent", "failed", "failed", "sent"]
    assert [line["event"] for line in logs.lines] == ["delivery_failed", "delivery_failed"]


async def test_what_does_not_fit_and_what_is_left_at_the_end_is_counted(logs: LogCapture) -> None:
    """The queue is bounded: a runtime that hangs costs no memory. The messages themselves are in their sessions."""
    outcomes: list[str] = []
    began, never = asyncio.Event(), asyncio.Event()

    class Hangs:
        async def send(self, _delivery: Delivery, _body: bytes) -> bool:
            began.set()
            await never.wait()
            return True

    async with Deliveries(Hangs(), logs.loggers("deliveries"), outcomes.append, workers=1, capacity=1) as deliveries:
        deliveries.offer(_job(b"1"))
        async with asyncio.timeout(5):
            await began.wait()
        deliveries.offer(_job(b"2"))
        deliveries.offer(_job(b"3"))
        assert outcomes == ["dropped"]
    assert outcomes == ["dropped", "dropped"]
