"""Who may ask: a service of the tenant with a token for it, about its own people, and nothing else by that token."""

from __future__ import annotations

import pytest

from gateway.policy.shipped import shipped
from gateway.settings import Settings
from tests.authzen.conftest import EVALUATION, EVALUATIONS, SEARCH, Desk
from tests.clock import SettableClock
from tests.conftest import LogCapture
from tests.house import house
from tests.path.examples import examples

PATHS = (EVALUATION, EVALUATIONS, f"{SEARCH}/subject", f"{SEARCH}/resource", f"{SEARCH}/action")


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_credential_nobody_is_answered(desk: Desk, path: str) -> None:
    """401 with a challenge, before anything is read."""
    answer = await desk.home.post(None, path, {})

    assert (answer.status_code, answer.headers["www-authenticate"][:6]) == (401, "Bearer")


@pytest.mark.parametrize(
    ("kind", "role", "scopes", "status"),
    [
        ("service", "decider", ("decide",), 200),
        ("service", "decider", ("decide", "session"), 200),
        ("service", "decider", ("*",), 403),
        ("service", "decider", ("gateway",), 403),
        ("service", "decider", ("session", "memory", "admin", "gateway"), 403),
        ("service", "connector", ("decide",), 403),
        ("service", "admin", ("decide",), 403),
        ("person", "decider", ("decide",), 403),
        ("person", "owner", ("decide",), 403),
        ("person", "owner", ("*",), 403),
    ],
)
async def test_a_service_token_with_scope_decide_and_nobody_else(
    desk: Desk, kind: str, role: str, scopes: tuple[str, ...], status: int
) -> None:
    """Issue 4: "callers need a service token with scope `decide`": all three of role, service and scope."""
    await desk.home.add("caller", role, kind=kind)
    desk.home.secrets["caller"] = await desk.home.token("caller", scopes=scopes)
    before = await desk.home.audit(kind="decision", action="history")

    answer = await desk.ask(EVALUATION, desk.question(), who="caller")

    assert answer.status_code == status, answer.text
    assert (len(await desk.home.audit(kind="decision", action="history")) > len(before)) == (status == 200)
    if status == 403:
        assert answer.json()["code"] == "tool_not_allowed"


async def test_a_row_for_everything_does_not_make_a_person_a_decision_point(desk: Desk) -> None:
    """Whatever the rows say: who asks is a service whose token was made for it."""
    await desk.home.publish(f"{shipped('default.csv')}\np, *, *, *, all, any, *, *, allow\n")

    for path in PATHS:
        assert (await desk.ask(path, desk.question(), who="alice")).status_code == 403
    assert await desk.decides(desk.question("bob")) is True


async def test_a_token_for_decisions_reaches_nothing_else(desk: Desk, logs: LogCapture) -> None:
    """Every other route refuses it, whatever else the service may do."""
    await desk.home.add("both", "decider", "member", "admin", "connector", "auditor", kind="service")
    desk.home.secrets["both"] = await desk.home.token("both", scopes=["decide"])
    words = {"session": desk.group, "agent": "flight", "profile": desk.home.id("bob"), "version": "1", "token": "tok_1"}

    for example in examples(desk.home, logs.loggers, **words):
        answer = await example.send(desk.home, "both")
        ours = example.path.startswith("/access/")
        assert answer.status_code == (200 if ours else 403), (example.path, answer.text)


async def test_another_tenant_s_people_and_sessions_are_missing(
    desk: Desk, settings: Settings, clock: SettableClock, logs: LogCapture
) -> None:
    """Issue 4: "can ask about their own tenant only": the same answer as for what nobody has."""
    other = settings.model_copy(
        update={"state": settings.state.model_copy(update={"folder": settings.state.folder / "x"})}
    )
    async with house(other, clock, logs.loggers, name="globex") as globex:
        theirs, key = globex.id("alice"), await globex.open("alice")
    no_one = "prf_00000000000000000000000000"
    made = [
        await desk.answer(EVALUATION, {**desk.question(), "subject": {"type": "user", "id": one}})
        for one in (theirs, no_one, "alice", "gst_1")
    ] + [await desk.answer(EVALUATION, desk.question(session=one)) for one in (key, key[:-3] + "000", "nothing")]
    for body in made:
        assert body["decision"] is False
        del body["context"]["decision"]
    assert all(body == made[0] for body in made[:4])
    assert all(body == made[4] for body in made[4:])


async def test_whoever_is_gone_may_do_nothing_and_a_merged_id_is_its_survivor(desk: Desk) -> None:
    """Like a sign-in of theirs: disabled is nobody, merged is the other one."""
    home = desk.home
    await home.add("bobby", "member")
    await home.gateway.stores.identities.merge(home.tenant, home.id("bobby"), home.id("bob"), home.gateway.clock.now())
    assert await desk.decides(desk.question("bobby", session=desk.group)) is True

    await home.gateway.stores.identities.change_profile(
        home.tenant, home.id("bob"), name=None, emails=None, disabled=True
    )
    body = await desk.answer(EVALUATION, desk.question("bob", session=desk.group))
    assert (body["decision"], body["context"]["reason"]) == (False, "profile_retired")


async def test_a_token_for_decisions_can_be_made_for_a_service(desk: Desk) -> None:
    """`decide` is a scope like the others; whoever makes the token holds it themselves."""
    owner = "olga"
    path = f"/v1/admin/people/{desk.home.id('gate')}/tokens"
    made = await desk.home.post(owner, path, {"name": "gate", "scopes": ["decide"]})

    assert made.status_code == 201, made.text
    desk.home.secrets["made"] = made.json()["secret"]
    assert (await desk.ask(EVALUATION, desk.question(), who="made")).status_code == 200
