"""Turns a few plain words into a token as an attacker, or an honest issuer, would send it.

The words are those of `attacks.yaml`: what is not said is as the issuer `main` signs it for alice.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Literal

import orjson
from joserfc import jwe
from joserfc.jwk import ECKey
from pydantic import BaseModel, ConfigDict, Field

from tests.issuer import ABSENT, LocalIssuer, SigningKey, encode, sign, sign_with_secret, signing_key, without_absent

TURN = "gwt_"
# How the proxy `cloud` signs, where another issuer would sign an access token.
USUAL = {"cloud": ({"typ": "JWT"}, {"aud": "the-app-of-the-proxy", "client_id": ABSENT})}
_TIME = re.compile(r"now([+-]\d+)?")
_CORRUPT = re.compile(r"(cut|drop) (\d+)")

Signer = Literal[
    "the issuer",
    "a stranger",
    "nobody",
    "zeros",
    "an empty secret",
    "the public key as PEM",
    "the public key as DER",
    "the public key as JWK",
]
Change = str | dict[str, Any]


class Jwt(BaseModel):
    """A JWT, in the words of a row; `absent` leaves a header or claim out, `now+30` is a time."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    issuer: str = "main"
    sub: str = "alice"
    kid: str | None = None  # which of the issuer's keys signs; its first one where none is named
    header: dict[str, Any] = {}
    claims: dict[str, Any] = {}
    header_text: str | None = None  # bytes instead of JSON; `…` stands for the honest members
    claims_text: str | None = None
    signed_by: Signer = Field(default="the issuer")
    then: list[Change] = []


class Turn(BaseModel):
    """A turn token of a person's turn in a session; with other claims or headers the gateway's own key signs it."""

    model_config = ConfigDict(extra="forbid")

    of: str = "alice"
    session: str = "{alice's session}"
    header: dict[str, Any] = {}
    claims: dict[str, Any] = {}
    signed_by: Literal["the gateway", "a stranger"] = "the gateway"


class Forge:
    """Makes tokens. `words` are what `{…}` in a row stands for."""

    def __init__(self, issuers: Mapping[str, LocalIssuer], words: Mapping[str, str]) -> None:
        self._issuers = issuers
        self._words = words
        self._numbers = count(1)

    def fill(self, value: Any) -> Any:
        """`value` with names of people, issuers and times put in."""
        if isinstance(value, Mapping):
            return {self.fill(name): self.fill(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.fill(one) for one in value]
        return self._filled(value) if isinstance(value, str) else value

    def _filled(self, text: str) -> Any:
        if text == "absent":
            return ABSENT
        if time := _TIME.fullmatch(text):
            return int(self._issuers["main"].clock.now().timestamp()) + int(time[1] or 0)
        if text == "now in ms":  # as LINE writes it
            return int(self._issuers["main"].clock.now().timestamp() * 1_000)
        if "{next}" in text:
            text = text.replace("{next}", str(next(self._numbers)))
        for word, meaning in self._words.items():
            text = text.replace(f"{{{word}}}", meaning)
        return text.replace("{long}", "x" * 20_000).replace("{256}", "x" * 256)

    def jwt(self, spec: Jwt) -> str:
        """The token."""
        issuer = self._issuers[spec.issuer]
        key = next(one for one in issuer.keys if spec.kid in (None, one.kid))
        usual_header, usual_claims = USUAL.get(spec.issuer, ({}, {}))
        header = {"alg": key.algorithm, "typ": "at+jwt", "kid": key.kid} | usual_header | self.fill(spec.header)
        claims = issuer.claims(self.fill(spec.sub)) | usual_claims | self.fill(spec.claims)
        if "jwk" in header:
            header["jwk"] = signing_key("stranger").published()
        text = self._signed(
            spec.signed_by,
            _bytes(spec.header_text, without_absent(header)),
            _bytes(None if spec.claims_text is None else str(self._filled(spec.claims_text)), without_absent(claims)),
            key,
        )
        for change in spec.then:
            text = self.changed(text, change, key)
        return text

    def turn_token(self, given: str, spec: Turn, key: SigningKey) -> str:
        """The one that was given out, or what `spec` makes of it."""
        if spec.signed_by == "the gateway" and not (spec.header or spec.claims):
            return given
        header, claims, _ = given.removeprefix(TURN).split(".")
        signer = key if spec.signed_by == "the gateway" else signing_key("stranger's turns", "Ed25519")
        return TURN + sign(_json(header) | self.fill(spec.header), _json(claims) | self.fill(spec.claims), signer)

    def _signed(self, signer: Signer, header: bytes, claims: bytes, key: SigningKey) -> str:
        unsigned = f"{encode(header)}.{encode(claims)}"
        match signer:
            case "the issuer":
                return sign(header, claims, key)
            case "a stranger":
                return sign(header, claims, signing_key(f"stranger's {key.algorithm}", key.algorithm))
            case "nobody":
                return f"{unsigned}."
            case "zeros":
                return f"{unsigned}.{encode(bytes(64))}"
            case "an empty secret":
                return sign_with_secret(header, claims, b"")
            case "the public key as PEM":
                return sign_with_secret(header, claims, key.key.as_pem(private=False))
            case "the public key as DER":
                return sign_with_secret(header, claims, key.key.as_der(private=False))
            case "the public key as JWK":
                return sign_with_secret(header, claims, orjson.dumps(key.published()))

    def changed(self, text: str, change: Change, key: SigningKey) -> str:
        """A token after somebody tampered with it."""
        if isinstance(change, Mapping):
            ((verb, what),) = change.items()
            what = self.fill(what)
            match verb:
                case "append":
                    return f"{text}{what}"
                case "prepend":
                    return f"{what}{text}"
                case "replace":
                    return _replaced(text, *what)
                case "claims":
                    return _with_other_claims(text, what)
            raise AssertionError(f"nobody knows how to {verb} a token")
        if corrupted := _CORRUPT.fullmatch(change):
            count = int(corrupted[2])
            return text[:-count] if corrupted[1] == "cut" else text[count:]
        return _CHANGES[change](text, key)


def _bytes(raw: str | None, honest: Mapping[str, Any]) -> bytes:
    if raw is None:
        return orjson.dumps(honest)
    return raw.encode().replace("…".encode(), orjson.dumps(honest)[1:-1])


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"{old!r} is not in the token, so the row would prove nothing"
    return text.replace(old, new, 1)


def _with_other_claims(text: str, claims: dict[str, Any]) -> str:
    """Other claims under the signature of before."""
    header, payload, signature = text.split(".")
    return f"{header}.{encode(orjson.dumps(_json(payload) | claims))}.{signature}"


def _json(part: str) -> dict[str, Any]:
    return dict(orjson.loads(base64.urlsafe_b64decode(part + "==")))


def _encrypted(text: str, key: SigningKey) -> str:
    """A JWE for the issuer's own key, with the token inside (RFC 7519 section 11.2)."""
    assert isinstance(key.key, ECKey)
    protected = {"alg": "ECDH-ES", "enc": "A128GCM", "cty": "JWT", "typ": "at+jwt"}
    return jwe.encrypt_compact(protected, text, key.key)


def _as_json(text: str, _key: SigningKey) -> str:
    """The flattened JSON serialisation (RFC 7515 section 7.2.2)."""
    protected, payload, signature = text.split(".")
    return orjson.dumps({"payload": payload, "protected": protected, "signature": signature}).decode()


def _nested(text: str, key: SigningKey) -> str:
    return sign({"alg": key.algorithm, "typ": "at+jwt", "kid": key.kid, "cty": "JWT"}, text.encode(), key)


def _twin_of_last_letter(text: str, _key: SigningKey) -> str:
    """Another letter with the same leading bits: base64 that decodes to the same bytes."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return text[:-1] + alphabet[alphabet.index(text[-1]) ^ 1]


def _signature_of_another(text: str, key: SigningKey) -> str:
    other = sign({"alg": key.algorithm}, {"sub": "bob"}, key)
    return text.rpartition(".")[0] + "." + other.rpartition(".")[2]


_CHANGES: dict[str, Callable[[str, SigningKey], str]] = {
    "without its signature": lambda text, _: text.rpartition(".")[0] + ".",
    "without its last part": lambda text, _: text.rpartition(".")[0],
    "without its first part": lambda text, _: text.partition(".")[2],
    "with the signature of another": _signature_of_another,
    "with a twin of its last letter": _twin_of_last_letter,
    "with its last letter changed": lambda text, _: text[:-1] + ("A" if text[-1] != "A" else "B"),
    "in the alphabet of plain base64": lambda text, _: text.replace("-", "+").replace("_", "/") + "+/",
    "padded to a multiple of four": lambda text, _: ".".join(one + "=" * (-len(one) % 4) for one in text.split(".")),
    "in capitals": lambda text, _: text.upper(),
    "twice": lambda text, _: f"{text},{text}",
    "encrypted": _encrypted,
    "nested": _nested,
    "as JSON": _as_json,
}
