"""The tree of errors that a caller can see; `web/problems.py` turns each into a problem document.

* GatewayError
  + Unauthenticated        401 unauthenticated         no credential, or one that is not good
  + ToolNotAllowed         403 tool_not_allowed        a function that the caller's roles lack altogether
  + NotFound               404 not_found               missing, or not yours: the caller can't tell which
  + Conflict               409 conflict                what was asked no longer fits what is there
  + PreconditionFailed     412 precondition_failed     a stale `If-Match`
  + TooLarge               413 too_large               a body or a file over its limit
  + Invalid                422 invalid                 a field breaks a rule; `faults` names each
    - Malformed            400 invalid                 the same, where a standard wants it told so (AuthZEN)
  + PreconditionRequired   428 precondition_required   a write without the hash that was read
  + RateLimited            429 rate_limited            too many requests of this person
  + Unavailable            503 unavailable             something beneath is away or stale; try again
* ConfigurationFaults      no start; every fault in the settings at once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One broken rule: which field, which rule, a sentence for the person, and a position where there is a text."""

    field: str
    rule: str
    message: str
    line: int | None = None
    column: int | None = None


def field_path(parts: Sequence[str | int]) -> str:
    """A field's full name as a person writes it: `("oidc", "issuers", 0, "audience")` is `oidc.issuers[0].audience`."""
    name = ""
    for part in parts:
        if isinstance(part, int):
            name += f"[{part}]"
        else:
            name += f".{part}" if name else part
    return name


class GatewayError(Exception):
    """Anything that a caller is told, in words that show nothing of another person."""

    status = 500
    code = "internal"
    title = "The gateway failed"

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}


class Unauthenticated(GatewayError):
    """No credential was presented, or one that does not hold. `reason` is for the audit; the caller reads `detail`."""

    status = 401
    code = "unauthenticated"
    title = "Who are you?"

    def __init__(self, detail: str, *, reason: str, error: str | None = None) -> None:
        challenge = 'Bearer realm="gateway"'
        if error is not None:  # RFC 6750 section 3.1: no error code where no credential was sent
            challenge += f', error="{error}"'
        super().__init__(detail, headers={"WWW-Authenticate": challenge})
        self.reason = reason


class ToolNotAllowed(GatewayError):
    """The caller's roles hold no row that could ever allow this function, so that naming it reveals nothing."""

    status = 403
    code = "tool_not_allowed"
    title = "You can't do this here"


class NotFound(GatewayError):
    """Missing or not yours. Every one has the same text, so that the two can't be told apart (design section 7)."""

    status = 404
    code = "not_found"
    title = "Not found"
    DETAIL = "There is nothing here under that name that you may use."

    def __init__(self) -> None:
        super().__init__(self.DETAIL)


class Conflict(GatewayError):
    """The request was right when it was made; what it stands on has changed. `facts` says what is there now."""

    status = 409
    code = "conflict"
    title = "That no longer fits"

    def __init__(self, detail: str, *, facts: dict[str, object] | None = None) -> None:
        super().__init__(detail)
        self.facts = facts or {}


class PreconditionFailed(GatewayError):
    """The file changed since it was read; `current` is its hash now, or None where there is no file."""

    status = 412
    code = "precondition_failed"
    title = "It changed since you read it"

    def __init__(self, detail: str, *, current: str | None) -> None:
        super().__init__(detail)
        self.current = current


class PreconditionRequired(GatewayError):
    """A write that could lose somebody's text must name the hash that was read."""

    status = 428
    code = "precondition_required"
    title = "Say which version you read"


class TooLarge(GatewayError):
    """A body or a text is over its limit."""

    status = 413
    code = "too_large"
    title = "Too large"


class Invalid(GatewayError):
    """One or more fields break a rule; nothing was changed."""

    status = 422
    code = "invalid"
    title = "Some fields are not right"

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(f"{fault.field}: {fault.message}" for fault in faults[:3]))
        self.faults = tuple(faults)

    @classmethod
    def of(cls, field: str, rule: str, message: str) -> Self:
        """One fault in one field."""
        return cls([Fault(field=field, rule=rule, message=message)])


class Malformed(Invalid):
    """A request that a standard of others' answers with 400; otherwise as `Invalid`."""

    status = 400


class RateLimited(GatewayError):
    """Too many requests of one caller."""

    status = 429
    code = "rate_limited"
    title = "Too many requests"


class Unavailable(GatewayError):
    """Something beneath is away, or what we know is too old to decide by: refuse, never guess (design section 12)."""

    status = 503
    code = "unavailable"
    title = "Not available right now"

    def __init__(self, detail: str, *, retry_after_s: int = 1) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


class ConfigurationFaults(Exception):
    """The settings can't be used; every fault is named, and the gateway does not start."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(f"{fault.field}: {fault.message}" for fault in faults))
        self.faults = tuple(faults)
