"""Who may say that they are the operator of the machine (design section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.errors import Unauthenticated
from gateway.identity.bearer import HEADER, BearerHeader
from gateway.identity.credentials import Credentials
from gateway.identity.reserved import OPERATOR_ISSUER as RESERVED
from gateway.identity.roles import role_of
from gateway.model import Principal, SessionId, TurnBinding
from gateway.stages.authenticate import Authenticate
from tests.cast import ACME, BEGAN, FLIGHT


class Nobody:
    """A verifier to which no token is good."""

    async def verify(self, token: str) -> Principal:
        """Raises Unauthenticated."""
        raise Unauthenticated("Not good.", reason="token_unknown")


async def test_only_the_command_line_on_the_machine_has_a_local_operator() -> None:
    """Design section 5: nothing that listens can be talked into it, and there is no switch in a request."""
    verifiers = {HEADER: BearerHeader(own={"gwp_": Nobody()}, signed=None, opaque=None)}
    at_home = Authenticate(verifiers, local_operator=True)
    listening = Authenticate(verifiers, local_operator=False)

    operator = await at_home(Credentials(operator_of=ACME))

    assert (operator.tenant, operator.issuer, operator.credential) == (ACME, "operator", "operator")
    assert operator.scopes == frozenset({"*"})
    with pytest.raises(Unauthenticated) as refused:
        await listening(Credentials(operator_of=ACME))
    assert refused.value.reason == "operator_not_local"
    for where in (at_home, listening):
        with pytest.raises(Unauthenticated):
            await where(Credentials.bearer("gwp_x"))
    assert operator.issuer == RESERVED  # which no sign-in can be linked under


class Known:
    """A verifier of tokens that are written as what they carry: `tenant/subject`, or `turn/…` for a turn token."""

    def __init__(self, kind: str, *roles: str) -> None:
        self.kind = kind
        self.roles = roles

    async def verify(self, values: Sequence[str], _credentials: Credentials) -> Principal | None:
        """The principal of the first value; None for "nothing"."""
        if values[0] == "nothing":
            return None
        subject, _, scopes = values[0].partition(" ")
        turn = TurnBinding(turn="trn_1", session=SessionId("ses_1"), incarnation=1, agent=FLIGHT)
        return Principal(
            tenant=ACME,
            issuer="test",
            subject=subject,
            credential=self.kind,
            scopes=frozenset(scopes.split(",")),
            expires_at=BEGAN if self.kind == "short" else None,
            roles=tuple(map(role_of, self.roles)),
            turn=turn if self.kind == "turn" else None,
        )


async def test_every_credential_that_is_present_is_verified() -> None:
    """Design section 5: several of one person reach what all of them reach; a turn token has at most one beside it."""
    authenticate = Authenticate(
        {
            b"x-long": Known("long", "admin", "supervisor"),
            b"x-short": Known("short", "supervisor@flight"),
            b"x-turn": Known("turn"),
            b"x-bad": Bad(),
        },
        local_operator=False,
    )

    async def asked(**headers: str) -> Principal:
        return await authenticate(
            Credentials([(f"x-{name}".encode(), value.encode()) for name, value in headers.items()])
        )

    alone = await asked(long="alice session,memory")
    both = await asked(long="alice session,memory", short="alice memory,gateway")
    wide = await asked(long="alice *", short="alice *")
    beside = await asked(long="robot *", turn="alice memory")
    unused = await asked(long="nothing", short="alice memory")

    assert (alone.beside, alone.expires_at) == ((), None)
    assert (both.scopes, both.expires_at) == (frozenset({"memory"}), BEGAN)
    assert (alone.roles, both.roles) == ((role_of("admin"), role_of("supervisor")), (role_of("supervisor@flight"),))
    assert beside.roles == ()
    assert [one.credential for one in both.beside] == ["short"]
    assert wide.scopes == {"*"}
    assert (beside.credential, beside.scopes) == ("turn", frozenset({"memory"}))
    assert [one.subject for one in beside.beside] == ["robot"]
    assert (unused.credential, unused.beside) == ("short", ())
    for refused, reason in (
        ({"long": "nothing"}, "credential_missing"),
        ({"other": "alice *"}, "credential_missing"),
        ({"long": "alice *", "bad": "x"}, "token_unknown"),
        ({"long": "robot *", "short": "alice *", "turn": "alice *"}, "credentials_several"),
    ):
        with pytest.raises(Unauthenticated) as raised:
            await asked(**refused)
        assert raised.value.reason == reason


class Bad:
    """A verifier to which nothing is good."""

    async def verify(self, _values: Sequence[str], _credentials: Credentials) -> Principal | None:
        """Raises Unauthenticated."""
        raise Unauthenticated("Not good.", reason="token_unknown")
