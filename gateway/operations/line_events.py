"""Turns the body of a LINE webhook into what it says: who wrote what where, who came, who left.

Messaging API, "Webhook event objects". What LINE may add is ignored; what it must send and does not is a fault of the
whole body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from gateway.operations.connectors import Peer
from gateway.tools.arguments import Arguments, parse

MOST_EVENTS = 100

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = 253_402_300_799_000  # the end of the year 9999, after which there are no dates
_TYPE = re.compile(r"[A-Za-z]{1,32}")


def _word(text: str) -> str:
    if _TYPE.fullmatch(text) is None:
        raise ValueError("must be a word")
    return text


Word = Annotated[str, AfterValidator(_word)]


class _Part(Arguments):
    """A part of the body; LINE adds fields as it likes."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class _Source(_Part):
    type: Word
    userId: Peer | None = None  # noqa: N815 - LINE's names
    groupId: Peer | None = None  # noqa: N815 - as LINE writes it
    roomId: Peer | None = None  # noqa: N815 - as LINE writes it


class _Message(_Part):
    type: Word
    text: str | None = None


class _Members(_Part):
    members: list[_Source]


class _Event(_Part):
    type: Word
    timestamp: Annotated[int, Field(ge=0, le=_LATEST_MS)]
    webhookEventId: Peer  # noqa: N815 - as LINE writes it
    mode: str = "active"
    source: _Source | None = None
    message: _Message | None = None
    replyToken: str | None = None  # noqa: N815 - as LINE writes it
    joined: _Members | None = None
    left: _Members | None = None


class _Body(_Part):
    destination: str
    events: Annotated[list[_Event], Field(max_length=MOST_EVENTS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEvent:
    """One event. Without a chat it is of a kind that happens nowhere, and without a text nobody said anything."""

    id: str
    type: str
    at: datetime
    chat: str | None
    chat_id: str
    sender: str | None  # LINE leaves it out for people who have not agreed
    text: str | None
    joined: tuple[str, ...]
    left: tuple[str, ...]
    reply_token: str | None
    active: bool  # LINE expects the bot's answer here, and not another module's

    @property
    def ended(self) -> bool:
        """Whether the bot is out of the chat."""
        return self.type == "leave"


@dataclass(frozen=True, slots=True)
class LineBody:
    """A webhook's body."""

    destination: str
    events: tuple[LineEvent, ...]


def read_body(data: object) -> LineBody:
    """What LINE says. Raises Invalid with every fault."""
    body = parse(_Body, data)
    return LineBody(body.destination, tuple(map(_event, body.events)))


def _event(one: _Event) -> LineEvent:
    chat, chat_id = _chat(one.source)
    return LineEvent(
        id=one.webhookEventId,
        type=one.type,
        at=_EPOCH + timedelta(milliseconds=one.timestamp),
        chat=chat,
        chat_id=chat_id,
        sender=one.source.userId if one.source is not None else None,
        text=_text(one),
        joined=_users(one.joined) if one.type == "memberJoined" else (),
        left=_users(one.left) if one.type == "memberLeft" else (),
        reply_token=one.replyToken,
        active=one.mode == "active",
    )


def _chat(source: _Source | None) -> tuple[str | None, str]:
    """The chat's kind and id. A source of a kind that LINE adds one day is no chat of ours."""
    if source is None:
        return None, ""
    kinds = {"user": ("direct", source.userId), "group": ("group", source.groupId), "room": ("room", source.roomId)}
    chat, found = kinds.get(source.type, (None, None))
    return (chat, found) if found is not None else (None, "")


def _text(one: _Event) -> str | None:
    """What was said. A sticker or a picture stands as one word, so that the conversation has no hole."""
    if one.type != "message" or one.message is None:
        return None
    if one.message.type == "text" and one.message.text:
        return one.message.text
    return f"[{one.message.type}]"


def _users(members: _Members | None) -> tuple[str, ...]:
    found = (one.userId for one in members.members) if members is not None else ()
    return tuple(one for one in found if one is not None)
