"""Turns `attacks.yaml` into typed rows; a word that nobody knows is a fault of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from tests.identity.forging import Change, Jwt, Turn

ROWS = Path(__file__).with_name("attacks.yaml")


class Words(BaseModel):
    """A piece of the table."""

    model_config = ConfigDict(extra="forbid")


class Opaque(Words):
    """A token that its server is asked about, and what the server says of it; `known` is whether it gave it out."""

    sub: str = "alice"
    says: dict[str, Any] = {}
    known: bool = True


class Credential(Words):
    """What is presented: exactly one of a JWT, something of ours, or a text as it is."""

    jwt: Jwt | None = None
    access_token: str | None = None  # whose
    turn: Turn | None = None
    opaque: Opaque | None = None
    browser: str | None = None  # the cookie of a browser that this person is signed in with
    csrf_token: str | None = None  # what a write has to show from the browser that this person signed in with last
    flow: Literal["state", "cookie"] | None = None  # of a sign-in that a browser begins here (`state`), and its cookie
    text: str | None = None
    then: list[Change] = []


class Sent(Words):
    """A credential at its place: in a header (`as` is its value), a cookie, the query or the body."""

    header: str | None = None
    cookie: str | None = None
    query: str | None = None
    body: str | None = None
    value: str = Field(default="{}", alias="as")
    credential: Credential = Credential(jwt=Jwt())


class Attempt(Words):
    """A request, but for its credentials."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = {}


class Row(Words):
    """One attack, and what has to become of it."""

    name: str
    source: str = ""
    way: str = "bearer"  # whose honest credential shows that the attempt itself would succeed
    bearer: Jwt | str | None = None  # a JWT, or a text, as the one Authorization header
    access_token: str | None = None  # a person's, as the one Authorization header
    turn: Turn | None = None  # a turn token, as the one Authorization header
    opaque: Opaque | None = None  # an opaque token, as the one Authorization header
    then: list[Change] = []  # what happens to that token
    send: list[Sent] = []
    peer: str = "127.0.0.1"
    before: list[str] = []  # what happens between the making of the credential and its use
    attempt: str = "remember"
    answer: int = 401
    says: str = "not valid"
    page: bool = False  # the answer is a page for people, with this text in it
    reason: str
    decided: str | None = None  # the code of the decision, where it came to one
    audited: bool = False  # in the chain of the tenant; else only counted, since nobody knows whose it is

    @property
    def sent(self) -> list[Sent]:
        """Everything that is presented."""
        if self.access_token is not None:
            credential: dict[str, Any] = {"access_token": self.access_token, "then": self.then}
        elif self.turn is not None:
            credential = {"turn": self.turn, "then": self.then}
        elif self.opaque is not None:
            credential = {"opaque": self.opaque, "then": self.then}
        elif isinstance(self.bearer, str):
            credential = {"text": self.bearer}
        elif self.bearer is not None:
            credential = {"jwt": self.bearer}
        else:
            return self.send
        alone = Sent.model_validate({"header": "Authorization", "as": "Bearer {}", "credential": credential})
        return [alone, *self.send]


class Way(Words):
    """How an honest alice comes in."""

    send: list[Sent]
    peer: str = "127.0.0.1"
    attempt: str = "remember"


class Table(Words):
    """The whole file."""

    ways: dict[str, Way]
    attempts: dict[str, Attempt]
    says: dict[str, str]
    attacks: list[Row]


def table() -> Table:
    """What the file says. Raises pydantic's ValidationError."""
    return Table.model_validate(yaml.safe_load(ROWS.read_text(encoding="utf-8")))
