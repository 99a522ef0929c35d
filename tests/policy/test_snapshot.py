"""Decisions of a snapshot: deny by default, ends of rows, bounded memory, the traps of Casbin (design section 7)."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from gateway.model import Action, AgentName, Chat, Question, Relation, Resource, Whose
from gateway.policy import slices, snapshot
from gateway.policy.casbin_model import MODEL
from gateway.policy.documents import parse
from gateway.policy.rows import ACTION_WORDS, MODES, RESOURCES, WHOSE, covers_resource
from gateway.policy.snapshot import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
FLIGHT = AgentName("flight")
HISTORY = Question(FLIGHT, Resource.SESSION_PRIVATE, Relation.SELF, Whose.OWN, Chat.PRIVATE, Action.HISTORY)
MEMBER = frozenset({"user:prf_01JA0000000000000000000000", "role:member", "*"})
ROW = "p, role:member, *, session/*, agent, shared, private, *, allow"


def snapshot_of(*rows: str) -> Snapshot:
    """A snapshot of these rows, as of NOW."""
    return Snapshot(parse("\n".join(rows)), 7, NOW)


def answer(subject: Snapshot, question: Question = HISTORY, who: frozenset[str] = MEMBER, at: datetime = NOW) -> str:
    """The code of a verdict, which also has to agree with `allowed`."""
    verdict = subject.decide(who, question, at)
    assert verdict.allowed == (verdict.code == "allowed")
    return verdict.code


def test_nothing_is_allowed_that_no_row_allows() -> None:
    """Trap 4 of the reference: Casbin with no rows runs its matcher over empty fields; we never ask it then."""
    assert answer(snapshot_of(ROW)) == "allowed"
    assert answer(snapshot_of(ROW), who=frozenset({"*"})) == "no_matching_row"
    assert answer(snapshot_of(ROW), who=frozenset()) == "no_matching_row"
    assert answer(snapshot_of("")) == "empty_policy"
    assert answer(snapshot_of("g, role:a, role:b")) == "empty_policy"
    assert answer(snapshot_of(f"{ROW}, 2029-01-01T00:00:00Z")) == "no_matching_row"


def test_a_verdict_names_the_row_that_decided() -> None:
    """Design section 2: a decision carries its reason code and the row."""
    deny = "p, *, flight, session/private, all, any, *, history, deny"
    both = snapshot_of(ROW, deny)

    assert snapshot_of(ROW).decide(MEMBER, HISTORY, NOW).rule == f"line 1: {ROW}"
    assert both.decide(MEMBER, HISTORY, NOW).rule == f"line 2: {deny}"
    assert answer(both) == "denied_by_row"
    assert answer(both, HISTORY._replace(action=Action.SEND)) == "allowed"
    assert both.decide(MEMBER, HISTORY._replace(chat=Chat.GROUP, action=Action.SEND), NOW).rule is None


def test_one_deny_for_any_role_of_the_requester_holds() -> None:
    """Design section 7: one decision sees all roles, and those they hold through `g`."""
    policy = snapshot_of(
        ROW,
        "g, role:supervisor, role:member",
        "g, role:lead, role:supervisor",
        "p, role:leaving, flight, session/*, all, any, *, *, deny",
    )

    assert answer(policy, who=frozenset({"role:lead"})) == "allowed"
    assert answer(policy, who=frozenset({"role:lead", "role:leaving"})) == "denied_by_row"
    assert answer(policy, HISTORY._replace(agent=AgentName("other")), MEMBER | {"role:leaving"}) == "allowed"
    assert answer(policy, who=frozenset({"role:stranger"})) == "no_matching_row"


def test_visibility_whose_chat_and_resource_follow_the_tables() -> None:
    """Design section 7, the table of modes, `own` < `shared` < `any`, `x/*` and `*`; every cell asked of Casbin."""
    seen = {
        "self": "self",
        "tree": "self child child_cross",
        "agent": "self child same_agent",
        "all": "self child child_cross same_agent other_agent",
    }
    assert {mode: set(relations) for mode, relations in MODES.items()} == {k: set(v.split()) for k, v in seen.items()}
    for mode, relation in product(seen, Relation):
        policy = snapshot_of(f"p, *, *, *, {mode}, any, *, *, allow")
        assert policy.decide(MEMBER, HISTORY._replace(relation=relation), NOW).allowed == (
            relation in seen[mode].split()
        )
    covered = {"own": "own", "shared": "own shared", "any": "own shared other"}
    assert set(WHOSE) == set(covered)
    for word, whose in product(covered, Whose):
        policy = snapshot_of(f"p, *, *, *, all, {word}, *, *, allow")
        assert policy.decide(MEMBER, HISTORY._replace(whose=whose), NOW).allowed == (whose in covered[word].split())
    for word, chat in product(("private", "group", "*"), Chat):
        policy = snapshot_of(f"p, *, *, *, all, any, {word}, *, allow")
        assert policy.decide(MEMBER, HISTORY._replace(chat=chat), NOW).allowed == (word in (chat, "*"))
    for pattern, resource in product(RESOURCES, Resource):
        policy = snapshot_of(f"p, *, *, {pattern}, all, any, *, *, allow")
        expected = pattern == resource or (pattern[-1] == "*" and resource.startswith(pattern[:-1]))
        assert policy.decide(MEMBER, HISTORY._replace(resource=resource), NOW).allowed == expected
        assert covers_resource(pattern, resource) == expected


def test_action_groups_hold_what_the_design_lists_and_a_star_never_means_impersonate() -> None:
    """Design section 7, `actions.csv`; section 5: reading as somebody else is a right of its own."""
    read = {"read", "list", "history", "search", "status", "load", "get"}
    named = {"read", "publish", "export", "erase", "merge", "impersonate", "decide", "connect"}
    write = set(map(str, Action)) - read - named
    assert len(write) == 17
    for action in Action:
        allowed = {
            word: snapshot_of(f"p, *, *, *, all, any, *, {word}, allow")
            .decide(MEMBER, HISTORY._replace(action=action), NOW)
            .allowed
            for word in ("read", "write", "*", "impersonate")
        }
        assert allowed == {
            "read": action in read,
            "write": action in write,
            "*": action != "impersonate",
            "impersonate": action == "impersonate",
        }
    assert ACTION_WORDS[Action.HISTORY] == {"history", "read", "*"}


def test_a_row_ends_at_the_instant_it_says_with_nobody_doing_anything() -> None:
    """Design section 7: `until` ends a row by itself, an allow as well as a deny."""
    end = "2030-01-02T00:00:00Z"
    just_before = LATER - timedelta(microseconds=1)
    cover = snapshot_of(f"{ROW}, {end}")
    banned = snapshot_of(ROW, f"p, *, *, *, all, any, *, *, deny, {end}")

    assert [answer(cover, at=at) for at in (NOW, just_before, LATER)] == ["allowed", "allowed", "no_matching_row"]
    assert [answer(banned, at=at) for at in (NOW, just_before, LATER)] == ["denied_by_row", "denied_by_row", "allowed"]
    # A clock that is set back finds the row again: the answer depends on the moment, not on what was asked before.
    assert [answer(cover, at=at) for at in (NOW, LATER)] == ["allowed", "no_matching_row"]
    assert [answer(banned, at=at) for at in (NOW, LATER)] == ["denied_by_row", "allowed"]


def test_a_snapshot_knows_its_next_expiry() -> None:
    """Design section 7: from the moment it was made, and from any later one through `live`."""
    ends = ("2029-01-01T00:00:00Z", "2030-01-02T00:00:00Z", "2030-01-03T00:00:00Z")
    policy = snapshot_of(ROW, *(f"{ROW}, {end}" for end in reversed(ends)))

    assert policy.version == 7
    assert policy.expires_at == LATER
    assert policy.live(LATER).expires_at == LATER + timedelta(days=1)
    assert policy.live(LATER + timedelta(days=1)).expires_at is None
    assert policy.expires_at == LATER
    assert answer(policy.live(LATER), at=LATER) == "allowed"
    assert snapshot_of(ROW).expires_at is None


def test_a_function_may_be_named_as_lacking_only_where_no_live_row_could_ever_allow_it() -> None:
    """Design section 7, "Denied looks like missing": 403 is for what a role lacks altogether."""
    policy = snapshot_of(
        "p, role:member, flight, memory/*, self, own, group, read, allow, 2030-01-02T00:00:00Z",
        "p, role:member, flight, admin/policy, all, any, *, *, deny",
    )

    def could(resource: Resource, action: Action, agent: str = "flight", at: datetime = NOW) -> bool:
        return policy.could_ever(MEMBER, agent, resource, action, at)

    assert could(Resource.MEMORY_DAILY, Action.GET)
    assert not could(Resource.MEMORY_DAILY, Action.GET, at=LATER)
    assert not could(Resource.MEMORY_DAILY, Action.APPEND)
    assert not could(Resource.MEMORY_DAILY, Action.GET, agent="other")
    assert not could(Resource.SESSION_PRIVATE, Action.GET)
    assert not could(Resource.ADMIN_POLICY, Action.READ)
    assert not snapshot_of("").could_ever(MEMBER, "flight", Resource.MEMORY_DAILY, Action.GET, NOW)


def test_the_cells_of_a_list_are_the_single_reads_that_are_allowed() -> None:
    """Design section 7: a list is { x | `list` is allowed on x }."""
    policy = snapshot_of(
        ROW,
        "p, role:member, *, session/private, tree, any, private, read, allow",
        "p, *, *, session/shared, self, own, *, list, deny",
        f"p, role:member, *, session/shared, all, any, group, *, allow, {LATER.isoformat().replace('+00:00', 'Z')}",
    )
    for at, chat, action in product((NOW, LATER), Chat, (Action.LIST, Action.SEND)):
        cells = policy.cells(MEMBER, "flight", chat, action, at)
        singles = {
            (resource, relation, whose)
            for resource, relation, whose in product(Resource, Relation, Whose)
            if resource.startswith("session/")
            and policy.decide(MEMBER, Question(FLIGHT, resource, relation, whose, chat, action), at).allowed
        }
        assert cells == singles
    assert (Resource.SESSION_SHARED, Relation.SELF, Whose.OWN) not in policy.cells(
        MEMBER, "flight", Chat.PRIVATE, Action.LIST, NOW
    )
    assert policy.cells(MEMBER, "flight", Chat.GROUP, Action.LIST, LATER) == frozenset()


def test_subjects_and_agents_that_a_document_does_not_name_take_no_memory() -> None:
    """Trap 3 of the reference: Casbin keeps every subject it hears of; callers must not be able to fill memory."""
    policy = snapshot_of(ROW, "p, role:member, flight, memory/*, agent, shared, *, read, allow")

    for number in range(20_000):
        who = frozenset({f"user:prf_{number:026d}", f"role:r{number}", "role:member", "*"})
        question = HISTORY._replace(agent=AgentName(f"agent{number}"))
        assert policy.decide(who, question, NOW).allowed
        assert not policy.decide(who - {"role:member"}, question, NOW).allowed

    assert policy.remembered == (2, 1)


def test_the_tables_of_answers_stay_bounded_whoever_asks_whatever() -> None:
    """Ours: slices and their answers are kept oldest out, so a document that names everybody can't fill memory."""
    people = [f"user:prf_{number:026d}" for number in range(snapshot.MOST_SLICES + 100)]
    policy = snapshot_of(*(f"p, {person}, *, session/*, all, any, *, *, allow" for person in people))

    for person in [*people, people[0]]:
        assert policy.decide(frozenset({person, "*"}), HISTORY, NOW).allowed
    assert policy.remembered == (snapshot.MOST_SLICES, snapshot.MOST_SLICES)

    facts = list(product(Resource, Relation, Whose, Chat, Action))
    for fact in [*facts[:2_000], facts[0]]:
        allowed = policy.decide(frozenset({people[0]}), Question(FLIGHT, *fact), NOW).allowed
        assert allowed == (fact[0].startswith("session/") and fact[4] != "impersonate")
    count, answers = policy.remembered
    assert count == snapshot.MOST_SLICES
    assert answers < snapshot.MOST_SLICES + 2 * slices.MOST_ANSWERS  # only two resources have a row


def test_casbin_is_asked_on_one_thread_alone() -> None:
    """Traps 1 and 2 of the reference: threads make Casbin raise or answer wrongly; a second one is refused."""
    policy = snapshot_of(ROW)
    assert answer(policy) == "allowed"
    raised: list[BaseException] = []

    def ask_elsewhere() -> None:
        try:
            policy.decide(MEMBER, HISTORY._replace(action=Action.SEND), NOW)
        except RuntimeError as error:
            raised.append(error)

    other = threading.Thread(target=ask_elsewhere)
    other.start()
    other.join(timeout=5)

    assert len(raised) == 1
    assert answer(policy, HISTORY._replace(action=Action.SEND)) == "allowed"


def test_a_snapshot_may_be_made_on_another_thread_than_the_one_that_asks() -> None:
    """Ours: reading 100,000 rows happens off the event loop."""
    made: list[Snapshot] = []
    maker = threading.Thread(target=lambda: made.append(snapshot_of(ROW)))
    maker.start()
    maker.join(timeout=5)

    assert answer(made[0]) == "allowed"


def test_a_published_version_leaves_the_old_one_as_it_was() -> None:
    """Trap 1 of the reference: nothing is reloaded; a new version is another object."""
    old = snapshot_of(ROW)
    assert answer(old) == "allowed"
    new = snapshot_of("p, *, *, *, all, any, *, *, deny")

    assert [answer(old), answer(new), answer(old)] == ["allowed", "denied_by_row", "allowed"]
    assert answer(old, HISTORY._replace(action=Action.SEND)) == "allowed"


@pytest.mark.parametrize("trap", ["eval(", "!some(where (p.eft == deny))\n"])
def test_the_model_holds_none_of_what_casbin_gets_wrong(trap: str) -> None:
    """Traps 4, 6, 11 and 12: the effect needs an allow, no eval, no operators inside quotes."""
    text = "\n".join(line for line in MODEL.splitlines() if not line.startswith("#")) + "\n"
    effect = next(line for line in text.splitlines() if line.startswith("e = "))

    assert effect == "e = some(where (p.eft == allow)) && !some(where (p.eft == deny))"
    assert trap not in text.replace(effect, "")
    assert [piece for piece in text.split("'")[1::2] if set(piece) & set("&|!")] == []
