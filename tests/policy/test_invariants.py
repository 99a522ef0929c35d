"""The refusals that no row can lift (design section 7); in each case an allow stands beside them, set up alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.model import OUTSIDE, Action, Chat, Kind, Origin, Requester, Resource
from gateway.policy.invariants import first_violation, scope_violation
from gateway.policy.targets import FunctionTarget, MemoryTarget, MissingTarget, NewSessionTarget, SessionTarget
from gateway.policy.targets import SingleTarget as Target
from tests.cast import ACME, FLIGHT, GLOBEX, child, person, profile_id, requester, root

ALICE = requester(person("alice", "owner"))
DANA = requester(person("dana", "supervisor"))
MINE = root("mine", "alice")
TEAM = root("team", "alice", "bob", kind=Kind.GROUP)
SECRET = root("secret", "alice", incognito=True)
BOX = root("box", "alice", sandboxed=True)
PRIVATE = Origin(session=MINE.session, chat=Chat.PRIVATE, kind=Kind.DIRECT)
GROUP = Origin(session=TEAM.session, chat=Chat.GROUP, kind=Kind.GROUP)
TAINTED = PRIVATE._replace(tainted=True)
BOXED = Origin(session=BOX.session, chat=Chat.PRIVATE, kind=Kind.DIRECT)


def _file(resource: Resource, owner: str | None = None) -> MemoryTarget:
    return MemoryTarget(ACME, FLIGHT, resource, profile_id(owner) if owner else None, "some/file.md")


LONGTERM = _file(Resource.MEMORY_LONGTERM)
DAILY = _file(Resource.MEMORY_DAILY)
MY_RULES = _file(Resource.PERSONAL_INSTRUCTIONS, "alice")
POLICY = FunctionTarget(ACME, Resource.ADMIN_POLICY, "policy.publish")


def _as(**changes: object) -> Requester:
    return replace(ALICE, profile=replace(ALICE.profile, **changes))  # type: ignore[arg-type]  # fields of a profile


@pytest.mark.parametrize(
    ("who", "origin", "target", "action", "code"),
    [
        # Other tenant.
        (ALICE, OUTSIDE, SessionTarget(MINE), Action.HISTORY, None),
        (ALICE, OUTSIDE, SessionTarget(root("theirs", "alice", tenant=GLOBEX)), Action.HISTORY, "tenant_mismatch"),
        (ALICE, OUTSIDE, FunctionTarget(GLOBEX, Resource.GATEWAY, "me"), Action.READ, "tenant_mismatch"),
        (replace(ALICE, tenant=GLOBEX), OUTSIDE, SessionTarget(MINE), Action.HISTORY, "tenant_mismatch"),
        # A retired profile.
        (_as(disabled=True), OUTSIDE, SessionTarget(MINE), Action.HISTORY, "profile_retired"),
        (_as(merged_into=profile_id("bob")), OUTSIDE, SessionTarget(MINE), Action.HISTORY, "profile_retired"),
        # A credential that was not made for this.
        (requester(person("alice"), scopes=["memory"]), PRIVATE, DAILY, Action.GET, None),
        (requester(person("alice"), scopes=["memory"]), PRIVATE, SessionTarget(MINE), Action.HISTORY, "scope_missing"),
        (requester(person("alice"), scopes=[]), OUTSIDE, POLICY, Action.READ, "scope_missing"),
        # What is not there is refused like what may not be seen.
        (ALICE, OUTSIDE, MissingTarget(ACME, Resource.SESSION_PRIVATE, "x"), Action.HISTORY, "target_missing"),
        # Root MEMORY.md from a shared session.
        (ALICE, PRIVATE, LONGTERM, Action.LOAD, None),
        (ALICE, GROUP, LONGTERM, Action.LOAD, "longterm_in_shared_session"),
        (ALICE, GROUP, LONGTERM, Action.GET, "longterm_in_shared_session"),
        (ALICE, GROUP, LONGTERM, Action.SEARCH, "longterm_in_shared_session"),
        (ALICE, GROUP, DAILY, Action.LOAD, None),
        (ALICE, GROUP, LONGTERM, Action.REMEMBER, None),
        # Another person's personal files.
        (ALICE, PRIVATE, MY_RULES, Action.EDIT, None),
        (ALICE, PRIVATE, _file(Resource.PERSONAL_INSTRUCTIONS, "bob"), Action.GET, "personal_of_another"),
        (ALICE, PRIVATE, _file(Resource.PERSONAL_DAILY, "bob"), Action.APPEND, "personal_of_another"),
        (ALICE, PRIVATE, _file(Resource.PERSONAL_LONGTERM), Action.GET, "personal_of_another"),
        (ALICE, PRIVATE, FunctionTarget(ACME, Resource.PERSONAL_DAILY, "x"), Action.GET, "personal_of_another"),
        # An incognito session to anybody but itself.
        (ALICE, PRIVATE._replace(session=SECRET.session), SessionTarget(SECRET), Action.HISTORY, None),
        (DANA, PRIVATE._replace(session=SECRET.session), SessionTarget(SECRET), Action.ENTER, "incognito_session"),
        (ALICE, PRIVATE, SessionTarget(SECRET), Action.HISTORY, "incognito_session"),
        (ALICE, OUTSIDE, SessionTarget(SECRET), Action.LIST, "incognito_session"),
        (ALICE, PRIVATE, SessionTarget(SECRET), Action.SEND, "incognito_session"),
        # A write to a MEMORY.md that is not Deep's.
        (ALICE, PRIVATE, LONGTERM, Action.EDIT, "longterm_single_writer"),
        (ALICE, PRIVATE, _file(Resource.PERSONAL_LONGTERM, "alice"), Action.APPEND, "longterm_single_writer"),
        (ALICE, PRIVATE, _file(Resource.PERSONAL_LONGTERM, "alice"), Action.REMEMBER, None),
        # A tainted turn.
        (ALICE, TAINTED, DAILY, Action.GET, None),
        (ALICE, TAINTED, MY_RULES, Action.GET, None),
        (ALICE, TAINTED, _file(Resource.PERSONAL_DAILY, "alice"), Action.APPEND, None),
        (ALICE, TAINTED, MY_RULES, Action.EDIT, "tainted_turn"),
        (ALICE, TAINTED, LONGTERM, Action.REMEMBER, "tainted_turn"),
        (ALICE, TAINTED, DAILY, Action.APPEND, "tainted_turn"),
        (ALICE, TAINTED, SessionTarget(TEAM), Action.SEND, "tainted_turn"),
        (ALICE, TAINTED, SessionTarget(MINE), Action.SEND, None),
        (ALICE, TAINTED, SessionTarget(MINE), Action.HISTORY, None),
        (ALICE, TAINTED, NewSessionTarget(ACME, FLIGHT, Kind.SUBAGENT, True, MINE), Action.SPAWN, "tainted_turn"),
        (ALICE, TAINTED, NewSessionTarget(ACME, FLIGHT, Kind.SUBAGENT, True, MINE), Action.CREATE, "tainted_turn"),
        (ALICE, TAINTED, NewSessionTarget(ACME, FLIGHT, Kind.DIRECT, True, None), Action.CREATE, None),
        # A sandboxed session keeps to its tree.
        (ALICE, BOXED, SessionTarget(BOX), Action.HISTORY, None),
        (ALICE, BOXED, SessionTarget(child("in-the-box", BOX)), Action.HISTORY, None),
        (ALICE, BOXED, SessionTarget(MINE), Action.HISTORY, "sandboxed_session"),
        (ALICE, BOXED, NewSessionTarget(ACME, FLIGHT, Kind.SUBAGENT, True, BOX), Action.SPAWN, None),
        (ALICE, BOXED, DAILY, Action.GET, None),
        (ALICE, PRIVATE, SessionTarget(BOX), Action.HISTORY, None),
    ],
)
def test_an_invariant_comes_before_every_row(
    who: Requester, origin: Origin, target: Target, action: Action, code: str | None
) -> None:
    """Design section 7, "Invariants", and "Sandboxed sessions"."""
    assert first_violation(who, origin, target, target.question(who, origin, action)) == code


@pytest.mark.parametrize(("scopes", "code"), [(["*"], None), (["session"], None), (["memory"], "scope_missing")])
def test_a_credential_reaches_the_areas_it_was_made_for(scopes: list[str], code: str | None) -> None:
    """Design section 5.4; a token with no scopes cannot call anything."""
    assert scope_violation(requester(person("alice"), scopes=scopes), Resource.SESSION_SHARED, Action.HISTORY) == code
