"""Turns a question, a row or a reason code into plain sentences.

What is for a person who was decided about names nobody else and no line of the document; what is for who may read the
policy names lines. Neither says what should be changed: that is for whoever publishes, after a preview.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.model import ANY_AGENT, Action, Chat, Question, Relation, Resource, Whose
from gateway.policy.explain import SUBJECT, UNTIL, Explanation, Near
from gateway.policy.rows import ALLOW, ANY, Row

_NEAREST: Final = 3

# Each invariant (`invariants.py`): what is refused, and why no row may lift it.
INVARIANTS: Final[Mapping[str, str]] = {
    "tenant_mismatch": "It belongs to another organisation. Organisations share nothing.",
    "profile_retired": "The profile is not active: it is not known here, was merged into another one, or is disabled.",
    "scope_missing": "The credential was not made for this area. Another credential of the same person may be.",
    "turn_token_elsewhere": (
        "A turn token is good for the tools of its own session, agent and turn, whatever its person may do elsewhere."
    ),
    "target_missing": "There is nothing of that name here, so there was nothing for a row to be asked about.",
    "incognito_session": "An incognito session is there for its owner and from inside itself alone.",
    "longterm_in_shared_session": "MEMORY.md is not read from a group: not everybody there may know what it holds.",
    "personal_of_another": "Personal instructions, memory and notes are for their person, and nobody else.",
    "longterm_single_writer": "Dreaming alone writes MEMORY.md, so that each entry has an origin and can be undone.",
    "tainted_turn": (
        "The turn has read text from outside, which may be what asks for this. The person can do it themselves."
    ),
    "sandboxed_session": "A sandboxed session reaches itself and what it spawned, and nothing else.",
}

_RESOURCES: Final[Mapping[Resource, str]] = {
    Resource.MEMORY_RULES: "the rules",
    Resource.MEMORY_SHARED: "the shared USER.md",
    Resource.MEMORY_LONGTERM: "MEMORY.md",
    Resource.MEMORY_DAILY: "the team's notes",
    Resource.MEMORY_DREAMS: "the dream diary",
    Resource.PERSONAL_INSTRUCTIONS: "personal instructions",
    Resource.PERSONAL_LONGTERM: "a personal MEMORY.md",
    Resource.PERSONAL_DAILY: "personal notes",
    Resource.ADMIN_POLICY: "the policy",
    Resource.ADMIN_PEOPLE: "people",
    Resource.ADMIN_AGENTS: "agents",
    Resource.ADMIN_AUDIT: "the audit",
    Resource.ADMIN_DREAMING: "dreaming",
    Resource.ADMIN_TENANTS: "organisations",
    Resource.GATEWAY: "one's own profile and tokens, and what services do",
}
_SESSIONS: Final[Mapping[tuple[Resource, Whose], str]] = {
    (Resource.SESSION_PRIVATE, Whose.OWN): "a private session of their own",
    (Resource.SESSION_PRIVATE, Whose.SHARED): "a private session that they take part in",
    (Resource.SESSION_PRIVATE, Whose.OTHER): "another person's private session",
    (Resource.SESSION_SHARED, Whose.OWN): "a shared session that they own",
    (Resource.SESSION_SHARED, Whose.SHARED): "a shared session that they take part in",
    (Resource.SESSION_SHARED, Whose.OTHER): "a shared session that they take no part in",
}
_FROM: Final[Mapping[str, str]] = {
    Chat.PRIVATE: "from a private session or from outside any",
    Chat.GROUP: "from a group",
    ANY: "from anywhere",
}
_WHOSE: Final[Mapping[str, str]] = {
    "own": "what is yours",
    "shared": "what is yours or shared with you",
    "any": "what is anybody's",
}
_HOW_FAR: Final[Mapping[str, str]] = {
    "self": "where you are",
    "tree": "where you are and what you started from there",
    "agent": "on the same agent",
    "all": "on any agent",
}


def question_in_words(question: Question) -> str:
    """`history` on another person's private session of flight, asked from a group."""
    what = _SESSIONS.get((question.resource, question.whose)) or _RESOURCES[question.resource]
    whose = " of another person" if question.resource.startswith("memory/") and question.whose is Whose.OTHER else ""
    other = " (not the agent they ask from)" if question.relation is Relation.OTHER_AGENT else ""
    agent = "" if question.agent == ANY_AGENT else f" of {question.agent}"
    return f"`{question.action}` on {what}{whose}{agent}{other}, asked {_FROM[question.chat]}"


def change_in_words(question: Question, found: Explanation) -> str:
    """What would have to be otherwise for another answer, by the lines of the document. It is no advice."""
    if found.verdict.code == "denied_by_row":
        return _without_the_deny(found)
    if found.verdict.allowed:
        lines = [one.row.line for one in found.matched]
        if len(lines) == 1:
            return f"Line {lines[0]} alone allows it; without it, or beside a deny, it would be denied."
        return f"{_lines(lines)} each allow it: it ends when all of them do, or where a deny stands beside them."
    nearest = [one for one in found.near if one.row.effect == ALLOW][:_NEAREST]
    said = f"No row allows {question_in_words(question)}."
    return " ".join([said, *(near_in_words(one) for one in nearest)])


def function_in_words(action: Action, resource: Resource, found: Explanation) -> str:
    """Who has a function that somebody lacks."""
    if found.matched:  # they hold a row by now, or did by the time of this version
        return f"{_lines([one.row.line for one in found.matched])} could allow `{action}` on {_plain(resource)}."
    said = f"No row could ever allow them `{action}` on {_plain(resource)}, whatever it is about."
    return " ".join([said, *(near_in_words(one) for one in found.near[:_NEAREST])])


def near_in_words(near: Near) -> str:
    """Line 41 would allow it for role:supervisor, which they don't hold."""
    would = f"Line {near.row.line} would {near.row.effect} it"
    if near.field == UNTIL:
        return f"{would}, but ended at {near.says}."
    if near.field == SUBJECT:
        who = near.says
        return f"{would} for {who}, {'which they do not hold' if who.startswith('role:') else 'who is somebody else'}."
    if near.field == "chat":
        return f"{would} {_FROM[near.says]}; this was asked {_FROM[near.asked]}."
    return f"{would} if {near.field} were {near.says} for it; this is {near.asked}."


def row_for_its_person(row: Row) -> str:
    """Why somebody may do something, in a sentence for themselves: without the line, and with nobody else in it."""
    if row.subject.startswith("role:"):
        who = f"Your role {row.subject.removeprefix('role:')}"
    else:
        who = "A rule for everybody" if row.subject == ANY else "A rule for you"
    does = "anything" if row.action == ANY else f"`{row.action}`"
    where = "every agent" if row.agent == ANY else f"the agent {row.agent}"
    what = "everything" if row.resource == ANY else row.resource
    return (
        f"{who} lets you do {does} with {what} of {where}: {_WHOSE[row.whose]}, {_HOW_FAR[row.visibility]}, "
        f"asked {_FROM[row.chat]}."
    )


def _without_the_deny(found: Explanation) -> str:
    denying = [one.row.line for one in found.matched if one.row.effect != ALLOW]
    allowing = [one.row.line for one in found.matched if one.row.effect == ALLOW]
    said = f"{_lines(denying)} {'denies' if len(denying) == 1 else 'deny'} it, and no allow lifts a deny."
    if allowing:
        return f"{said} Without that, {_lines(allowing, small=True)} would allow it."
    return f"{said} Without that, no row would allow it either."


def _lines(numbers: Sequence[int], *, small: bool = False) -> str:
    word = "line" if small else "Line"
    if len(numbers) == 1:
        return f"{word} {numbers[0]}"
    *first, last = [str(number) for number in numbers[:10]]
    return f"{word}s {', '.join(first)} and {last}" if len(numbers) <= 10 else f"{word}s {', '.join(first)}, {last} …"


def _plain(resource: Resource) -> str:
    return _RESOURCES.get(resource, "sessions")
