"""What admins and auditors have. Where somebody may do it, it is done so that nothing of the planted changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from urllib.parse import quote

from gateway.leak_test.driver import Driver, Probe, in_path
from gateway.leak_test.driving.targets import pages, victims
from gateway.leak_test.markers import Sort
from gateway.leak_test.world import Caller, Person
from gateway.model import Action, Resource

_PEOPLE = dict.fromkeys((Sort.EMAIL, Sort.TOKEN), (Action.READ, Resource.ADMIN_PEOPLE))
_MERGING = {
    Sort.SESSION: (Action.MERGE, Resource.ADMIN_PEOPLE),
    Sort.EMAIL: (Action.MERGE, Resource.ADMIN_PEOPLE),
    Sort.TOKEN: (Action.MERGE, Resource.ADMIN_PEOPLE),
}
# What was done and to which session; the emails that somebody was given are a part of what was done.
_AUDITED = dict.fromkeys((Sort.SESSION, Sort.EMAIL, Sort.TOKEN), (Action.READ, Resource.ADMIN_AUDIT))
PEOPLE = "/v1/admin/people"
ONE = f"{PEOPLE}/{{profile}}"


async def _send(driver: Driver, caller: Caller, row: str, target: str | None = None, body: object = None) -> None:
    method, _, path = row.partition(" ")
    await driver.send(
        Probe(caller=caller, row=row, method=method, target=target or path, body=body, by_function=_PEOPLE)
    )


def _spare(driver: Driver, caller: Caller) -> Person:
    return driver.world.spare[caller.tenant or next(iter(driver.world.spare))]


def _whom(driver: Driver, caller: Caller) -> list[Person]:
    """Whom a change is asked about: everybody's where it is refused, the spare person where it could be done."""
    if driver.expectation.function(caller, Action.EDIT, Resource.ADMIN_PEOPLE):
        return [_spare(driver, caller)]
    return list(victims(driver.world))[:3]


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def people(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/people`."""
    row = f"GET {PEOPLE}"
    probe = Probe(caller=caller, row=row, method="GET", target=f"{PEOPLE}?limit=3", by_function=_PEOPLE)
    emails = [one for one in driver.world.marks.all if one.sort is Sort.EMAIL and _is_here(one.where, caller)]
    await pages(driver, probe, emails)


def _is_here(person: object, caller: Caller) -> bool:
    return isinstance(person, Person) and person.tenant == caller.tenant and person.name != "mona"


async def person(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/people/{profile}`."""
    for one in victims(driver.world):
        await _send(driver, caller, f"GET {ONE}", f"{PEOPLE}/{one.id}")


async def adding(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/people`: an email that somebody has; the conflict may not say who."""
    body = {"name": "", "kind": "robot", "emails": ["nobody"], "roles": [{"role": "member", "agent": "*"}]}
    await _send(driver, caller, f"POST {PEOPLE}", PEOPLE, body)


async def changing(driver: Driver, caller: Caller) -> None:
    """`PATCH /v1/admin/people/{profile}`."""
    for one in _whom(driver, caller):
        body = {"name": "spare", "emails": [], "disabled": False}
        await _send(driver, caller, f"PATCH {ONE}", f"{PEOPLE}/{one.id}", body)


async def disabling(driver: Driver, caller: Caller) -> None:
    """`DELETE /v1/admin/people/{profile}`."""
    for one in _whom(driver, caller):
        await _send(driver, caller, f"DELETE {ONE}", f"{PEOPLE}/{one.id}")


async def roles(driver: Driver, caller: Caller) -> None:
    """`PUT /v1/admin/people/{profile}/roles`; nobody becomes anything, oneself neither."""
    whom = [*_whom(driver, caller), *([] if caller.person is None else [caller.person])]
    for one in whom:
        body = {"roles": [{"role": "nobody-has-this", "agent": "*"}] if one is not caller.person else [{"role": ""}]}
        await _send(driver, caller, f"PUT {ONE}/roles", f"{PEOPLE}/{one.id}/roles", body)


async def merging(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/people/{profile}/merge`, as a preview: which sessions would move, without a word of them."""
    mine = [one for one in victims(driver.world) if one.tenant == (caller.tenant or "scratch") and one.active]
    for one, into in pairwise(mine[:4]):
        body = {"into": into.id, "preview": True}
        probe = Probe(
            caller=caller,
            row=f"POST {ONE}/merge",
            method="POST",
            target=f"{PEOPLE}/{one.id}/merge",
            body=body,
            by_function=_MERGING,
        )
        await driver.send(probe)


async def linking(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/people/{profile}/identities`: alice's sender is hers."""
    for one in _whom(driver, caller):
        body = {"channel": "chat", "account": "main", "sender": "U-alice"}
        await _send(driver, caller, f"POST {ONE}/identities", f"{PEOPLE}/{one.id}/identities", body)
        body = {"issuer": "https://id.example", "subject": ""}
        await _send(driver, caller, f"POST {ONE}/identities", f"{PEOPLE}/{one.id}/identities", body)


async def unlinking(driver: Driver, caller: Caller) -> None:
    """`DELETE /v1/admin/people/{profile}/identities` of what is linked to nobody."""
    for one in _whom(driver, caller):
        target = f"{PEOPLE}/{one.id}/identities"
        body = {"channel": "chat", "account": "main", "sender": "U-nobody"}
        await _send(driver, caller, f"DELETE {ONE}/identities", target, body)
        await _send(
            driver, caller, f"DELETE {ONE}/identities", target, {"issuer": "https://id.example", "subject": "x"}
        )


async def tokens(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/people/{profile}/tokens`."""
    for one in driver.world.people:
        await _send(driver, caller, f"GET {ONE}/tokens", f"{PEOPLE}/{one.id}/tokens")


async def new_token(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/people/{profile}/tokens`: nobody makes one that speaks for somebody else."""
    for one in victims(driver.world):
        if one is not caller.person:
            body = {"name": "as them", "expires_in_days": 1, "scopes": ["*"]}
            await _send(driver, caller, f"POST {ONE}/tokens", f"{PEOPLE}/{one.id}/tokens", body)


async def revoking(driver: Driver, caller: Caller) -> None:
    """`DELETE /v1/admin/people/{profile}/tokens/{token}` of a token that the person does not have."""
    for one in _whom(driver, caller):
        target = f"{PEOPLE}/{one.id}/tokens/tok_{'0' * 26}"
        await _send(driver, caller, f"DELETE {ONE}/tokens/{{token}}", target)


# ── agents, policy ───────────────────────────────────────────────────────────────────────────────────────────────────


async def agents(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/agents`."""
    await _send(driver, caller, "GET /v1/admin/agents")


async def agent(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/agents/{agent}`."""
    for name in (*driver.world.agents, "none"):
        await _send(driver, caller, "GET /v1/admin/agents/{agent}", f"/v1/admin/agents/{name}")


async def new_agent(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/agents` with the folder of another one, which is taken."""
    body = {"name": "flight", "workspace": "hotel", "title": "Flight", "timezone": "UTC"}
    await _send(driver, caller, "POST /v1/admin/agents", body=body)


async def policy(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/policy`."""
    await _send(driver, caller, "GET /v1/admin/policy")


async def publishing(driver: Driver, caller: Caller) -> None:
    """`PUT /v1/admin/policy` on a base that is long gone."""
    body = {"text": "p, *, *, *, all, any, *, *, allow\n", "base_version": 0, "comment": "leak-test"}
    await _send(driver, caller, "PUT /v1/admin/policy", body=body)


async def versions(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/policy/versions`."""
    row = "GET /v1/admin/policy/versions"
    probe = Probe(caller=caller, row=row, method="GET", target="/v1/admin/policy/versions?limit=1")
    await pages(driver, probe, ())


async def version(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/policy/versions/{version}`."""
    for number in ("1", "999"):
        row = "GET /v1/admin/policy/versions/{version}"
        await _send(driver, caller, row, f"/v1/admin/policy/versions/{number}")


async def rolling_back(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/policy/versions/{version}/rollback` to one that there never was."""
    row = "POST /v1/admin/policy/versions/{version}/rollback"
    await _send(driver, caller, row, "/v1/admin/policy/versions/999/rollback")


# ── audit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def audit(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/audit` with every filter, about everybody."""
    allowed = driver.expectation.function(caller, Action.READ, Resource.ADMIN_AUDIT)
    row, path = "GET /v1/admin/audit", "/v1/admin/audit"
    instant = quote(driver.world.now.isoformat(), safe="")
    filters = [
        "kind=access", "kind=decision", "agent=flight", "action=history", "action=search", "action=get", "effect=deny",
        "effect=allow", "code=allowed", f"decision=dec_{'0' * 26}", f"from={instant}", f"to={instant}",
    ]  # fmt: skip
    for one in victims(driver.world):
        filters.append(f"person={one.id}&action=post")
        sessions = driver.world.planted_for(one)[:1]
        filters += [f"session={in_path(session.key)}" for session in sessions]
    probe = Probe(caller=caller, row=row, method="GET", target=path, by_function=_AUDITED, quotes=True)
    for narrow in filters if allowed else filters[:1]:
        await pages(driver, replace(probe, target=f"{path}?limit=200&{narrow}"), (), most=2)


async def verify(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/audit/verify`."""
    await _send(driver, caller, "GET /v1/admin/audit/verify")
