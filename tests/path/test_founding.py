"""How an organisation begins: its policy, its operator, and the demo (issue, "start")."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import Conflict, Invalid
from gateway.founding import DEMO, DEMO_AGENT, DEMO_PEOPLE
from gateway.identity.reserved import OPERATOR_ISSUER
from gateway.policy.shipped import shipped
from gateway.stages.authenticate import OPERATOR_SUBJECT
from tests.house import House

EXAMPLE = Path(__file__).parents[2] / "workspaces" / "demo" / "flight"


async def test_a_tenant_begins_with_a_policy_and_an_operator_and_nobody_else(home: House) -> None:
    """Design section 5: `gateway tenants add`; a name is one that can be part of a key."""
    founder, stores = home.gateway.founder, home.gateway.stores

    made = await founder.found("globex", policy=shipped("default.csv"))

    operator = await stores.identities.profile_of(made, OPERATOR_ISSUER, OPERATOR_SUBJECT)
    assert operator is not None
    assert (operator.kind, [one.role for one in operator.roles]) == ("service", ["owner"])
    assert await stores.identities.count_people(made) == 0
    with pytest.raises(Conflict):
        await founder.found("globex", policy=shipped("default.csv"))
    for name in ("", "Globex", "a b", "../x", "-x", "x" * 65):
        with pytest.raises(Invalid):
            await founder.found(name, policy=shipped("default.csv"))
    assert {one.id for one in await stores.tenants.all()} == {"acme", "globex"}


async def test_the_demo_is_people_with_tokens_and_a_copy_of_the_example(home: House) -> None:
    """Issue, "start": `workspaces/` in the repository is never written; a second founding finds it there."""
    before = {path: path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()}
    founder = home.gateway.founder

    secrets = await founder.found_demo(shipped("default.csv"), EXAMPLE)

    demo = House(home.gateway, home.app, DEMO, secrets=secrets)
    assert set(secrets) == {name for name, _ in DEMO_PEOPLE}
    for name, role in DEMO_PEOPLE:
        me = (await demo.get(name, "/v1/me")).json()
        assert (me["tenant"], me["profile"]["roles"]) == (
            "demo",
            [{"role": role, "agent": "*", "source": "assigned"}],
        )
    session = await demo.open("alice", agent=DEMO_AGENT)
    saved = await demo.tool("alice", session, "memory_append", scope="shared", text="Gate 4.")
    assert saved.json()["result"]["status"] == "ok"
    assert {path: path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()} == before

    again = await founder.found_demo(shipped("default.csv"), EXAMPLE)
    assert set(again.values()).isdisjoint(secrets.values())
    other = House(home.gateway, home.app, DEMO, secrets=again)
    for name in secrets:
        assert (await other.get(name, "/v1/me")).json()["profile"] == (await demo.get(name, "/v1/me")).json()["profile"]


@pytest.mark.parametrize(
    "step",
    ["identities.add_profile", "identities.link", "policies.publish", "agents.add", "identities.add_token"],
)
async def test_a_founding_that_was_cut_short_is_made_up_for_by_the_next(
    home: House, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a tenant whose tokens nobody saw is of no use; each step that was done is found again, and once."""
    founder, stores = home.gateway.founder, home.gateway.stores
    store, method = step.split(".")
    real = getattr(getattr(stores, store), method)
    left = 2 if step == "identities.add_token" else 0

    async def dies(*given: object, **named: object) -> None:
        nonlocal left
        if left == 0:
            raise InterruptedError
        left -= 1
        await real(*given, **named)

    with monkeypatch.context() as killed:
        killed.setattr(getattr(stores, store), method, dies)
        with pytest.raises(InterruptedError):
            await founder.found_demo(shipped("default.csv"), EXAMPLE)

    secrets = await founder.found_demo(shipped("default.csv"), EXAMPLE)

    demo = House(home.gateway, home.app, DEMO, secrets=secrets)
    for name, role in DEMO_PEOPLE:
        assert (await demo.get(name, "/v1/me")).json()["profile"]["roles"] == [
            {"role": role, "agent": "*", "source": "assigned"}
        ]
    assert await demo.open("alice", agent=DEMO_AGENT)
    assert await stores.identities.count_people(DEMO) == len(DEMO_PEOPLE)
    assert await stores.identities.profile_of(DEMO, OPERATOR_ISSUER, OPERATOR_SUBJECT) is not None


async def test_somebodys_own_tenant_is_never_made_the_demo(home: House) -> None:
    """Design section 5: the demo's tokens are printed."""
    await home.gateway.founder.found(DEMO, policy=shipped("default.csv"))
    with pytest.raises(Conflict):
        await home.gateway.founder.found_demo(shipped("default.csv"), EXAMPLE)
    assert await home.gateway.stores.identities.count_people(DEMO) == 0
