"""Who may say that they are the operator of the machine (design section 5)."""

from __future__ import annotations

import pytest

from gateway.errors import Unauthenticated
from gateway.identity.people import OPERATOR_ISSUER as RESERVED
from gateway.model import Principal
from gateway.stages.authenticate import Authenticate, Credentials
from tests.cast import ACME


class Nobody:
    """A verifier to which no token is good."""

    async def verify(self, token: str) -> Principal:
        """Raises Unauthenticated."""
        raise Unauthenticated("Not good.", reason="token_unknown")


async def test_only_the_command_line_on_the_machine_has_a_local_operator() -> None:
    """Design section 5: nothing that listens can be talked into it, and there is no switch in a request."""
    at_home = Authenticate(access_tokens=Nobody(), oidc=None, local_operator=True)
    listening = Authenticate(access_tokens=Nobody(), oidc=None, local_operator=False)

    operator = await at_home(Credentials(operator_of=ACME))

    assert (operator.tenant, operator.issuer, operator.credential) == (ACME, "operator", "operator")
    assert operator.scopes == frozenset({"*"})
    with pytest.raises(Unauthenticated) as refused:
        await listening(Credentials(operator_of=ACME))
    assert refused.value.reason == "operator_not_local"
    for where in (at_home, listening):
        with pytest.raises(Unauthenticated):
            await where(Credentials(("Bearer gwp_x",)))
    assert operator.issuer == RESERVED  # which no sign-in can be linked under
