"""What every table of the file is made of, and the rules that several of them share."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from gateway.environment import PREFIX

Algorithm = Literal["RS256", "ES256", "EdDSA"]
NonEmpty = Annotated[str, Field(min_length=1)]


class Group(BaseModel):
    """A table of the file: frozen, and a key that nobody knows is a fault, not something to ignore."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_loopback(host: str) -> bool:
    """Whether an address, or the name `localhost` (RFC 6761 section 6.3), can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def is_safe_url(text: str) -> bool:
    """Whether credentials may travel there: https, or http to this machine, and nothing hidden in the address."""
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        return False
    if not host or url.username is not None or url.password is not None or url.fragment or text != text.strip():
        return False
    return url.scheme == "https" or (url.scheme == "http" and is_loopback(host))


def origin_of(url: str) -> str:
    """The origin of a URL as a browser writes it in `Origin` (RFC 6454 section 6.2)."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, {"https": 443, "http": 80}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}" if host.isascii() else ""


def safe_url(value: str | None) -> str | None:
    """The address, or None. Raises ValueError for one that nothing may be sent to."""
    if value is not None and not is_safe_url(value):
        raise ValueError("must be an https URL without user or fragment; http only for an issuer on this machine")
    return value


def no_setting(variable: str | None) -> str | None:
    """The name of a variable that holds a secret. Raises ValueError for one that would be read as a setting."""
    if variable is not None and variable.startswith(PREFIX):
        raise ValueError(f"must be another name: variables that begin with {PREFIX} are settings")
    return variable


def _one_source_of_the_tenant(value: str | None, info: ValidationInfo) -> str | None:
    # A tenant that is itself at fault is not in `data`, and has its own line in the report.
    if "tenant" in info.data and (info.data["tenant"] is None) == (value is None):
        raise ValueError("name exactly one of tenant and tenant_claim")
    return value


# What every table of somebody's people says of them. `tenant` stands before `tenant_claim`, which looks at it.
OneTenant = Annotated[NonEmpty | None, Field(description="The tenant of all its people. This or `tenant_claim`.")]
TenantClaim = Annotated[
    NonEmpty | None,
    AfterValidator(_one_source_of_the_tenant),
    Field(validate_default=True, description="The claim that names the tenant. This or `tenant`."),
]
Provision = Annotated[bool, Field(description="Whether somebody new gets a profile, with the role member.")]
GroupsClaim = Annotated[
    NonEmpty, Field(description="The claim that lists a person's groups; only read where `roles` names some.")
]
GroupRoles = Annotated[
    dict[NonEmpty, tuple[NonEmpty, ...]],
    Field(
        description="What a group's people are, by its exact name: `supervisor`, `supervisor@flight`; never `owner`."
    ),
]
