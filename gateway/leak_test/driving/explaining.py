"""Why a decision was as it was, and what a draft would change.

Whoever may read the policy is told ids of sessions, and never a word of them; everybody else their own decisions alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.leak_test.driver import Driver, Probe, Twin
from gateway.leak_test.driving.targets import about, few_sessions, victims
from gateway.leak_test.markers import Sort
from gateway.leak_test.world import Caller
from gateway.model import Action, Resource

# A decision's record names the token that it was asked with, as the audit does.
_NAMED = {
    Sort.SESSION: (Action.READ, Resource.ADMIN_POLICY),
    Sort.TOKEN: (Action.READ, Resource.ADMIN_AUDIT),
}
_NO_DECISION = "dec_00000000000000000000000000"
_WIDER = "p, role:member, *, session/*, agent, any, private, history, allow\n"


async def explain(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/policy/explain`: of everybody's sessions and files, of a tool, of bare facts, of decisions."""
    allowed = driver.expectation.function(caller, Action.READ, Resource.ADMIN_POLICY)
    for number, question in enumerate(_questions(driver)):
        if allowed or number < 2:  # a function that the role lacks is refused before anything is looked at
            await _post(driver, caller, "/v1/admin/policy/explain", question)


def _questions(driver: Driver) -> Iterator[dict[str, object]]:
    first, *others = victims(driver.world)
    yield {"decision": _NO_DECISION}
    for decision in [*driver.decisions.values()][:20]:
        yield {"decision": decision}
    for session in few_sessions(driver.world):
        yield {"person": first.id, "action": "history", "session": session.key}
        yield {"person": session.owner.id, "action": "history", "session": session.id, "from": session.key}
    for other in others:
        yield {"person": first.id, "action": "get", "memory": f"{other.home}/users/{other.id}/USER.md"}
    yield {"person": first.id, "tool": "memory_get", "agent": "flight", "kind": "group", "action": "get"}
    bare = {"agent": "flight", "resource": "memory/longterm", "relation": "same_agent", "whose": "shared"}
    yield {"person": first.id, "action": "get", **bare, "chat": "group"}


async def my_decisions(driver: Driver, caller: Caller) -> None:
    """`POST /v1/me/explain`: of one's own refusals, which tell no more of a session than was asked; of others' none."""
    row, path = "POST /v1/me/explain", "/v1/me/explain"
    if not driver.wanted(row):
        return
    for label, decision in [*driver.decisions.items()][:12]:
        if label != caller.label:
            twin = Twin(
                target=path,
                body={"decision": _NO_DECISION},
                real=decision,
                other=_NO_DECISION,
                whose=label,
                what=f"{label}'s decision",
            )
            await _post(driver, caller, path, {"decision": decision}, twin)
    for session in few_sessions(driver.world)[:12]:
        asked = about(driver, caller, session, Action.STATUS, "GET /v1/sessions/{session}", reference=session.id)
        if asked is None or asked.twin is None:  # only what is refused
            continue
        refused = await driver.send(asked)
        decision = dict(refused.answer.headers).get(b"gateway-decision", b"").decode()
        if decision:
            driver.decisions[caller.label] = decision
            await _post(driver, caller, path, {"decision": decision})


async def _post(driver: Driver, caller: Caller, path: str, body: dict[str, object], twin: Twin | None = None) -> None:
    own = twin is not None and caller.person is not None and twin.whose.startswith(caller.person.name)
    await driver.send(
        Probe(
            caller=caller,
            row=f"POST {path}",
            method="POST",
            target=path,
            body=body,
            by_function=_NAMED,
            quotes=True,
            twin=None if own else twin,
        )
    )


async def preview(driver: Driver, caller: Caller) -> None:
    """`POST /v1/admin/policy/preview` of a document that shows more, over all that was asked so far."""
    text = driver.world.documents.get(caller.tenant, "") + _WIDER
    await _post(driver, caller, "/v1/admin/policy/preview", {"text": text, "days": 1})


async def watch(driver: Driver, caller: Caller) -> None:
    """`GET /v1/admin/policy/watch` since the rows that all was planted under."""
    row = "GET /v1/admin/policy/watch"
    for query in ("", "?version=1", "?version=2"):
        target = f"/v1/admin/policy/watch{query}"
        await driver.send(Probe(caller=caller, row=row, method="GET", target=target, by_function=_NAMED))
