"""The rows of the table that admins and auditors use: people, agents, policy, audit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field
from starlette.responses import Response

from gateway.errors import Invalid
from gateway.operations.agents import AgentBody, OfAgent
from gateway.operations.audit import Reading
from gateway.operations.catalogue import Catalogue
from gateway.operations.people_arguments import (
    IdentityBody,
    Listing,
    MergeBody,
    OfPerson,
    PersonBody,
    PersonPatch,
    RolesBody,
    TokenBody,
)
from gateway.operations.policy import OfVersion, PublishBody, Versions
from gateway.ports import AuditFilter
from gateway.tools.arguments import Arguments
from gateway.web.api import shapes
from gateway.web.api.endpoint import Answered, Endpoint, Incoming, Reader, json, reads, row
from gateway.web.api.for_people import PageQuery, nothing

Word = Annotated[str, Field(min_length=1, max_length=512)]


class AuditQuery(PageQuery):
    """How a reading of the audit is narrowed."""

    kind: Literal["access", "decision"] | None = None
    person: Word | None = None
    agent: Word | None = None
    session: Word | None = None
    action: Word | None = None
    effect: Literal["allow", "deny", "error"] | None = None
    code: Word | None = None
    decision: Word | None = None
    since: Annotated[AwareDatetime | None, Field(alias="from")] = None
    until: Annotated[AwareDatetime | None, Field(alias="to")] = None


def for_admins(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    """The rows."""
    return (*_people(catalogue), *_tokens(catalogue), *_agents(catalogue), *_policy(catalogue), *_audit(catalogue))


def _no_content(_answered: Answered) -> Response:
    return Response(status_code=204, headers={"Cache-Control": "no-store"})


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_person(model: type[Arguments] | None) -> Reader:
    """The profile of the path, with the body where there is one."""

    async def read(incoming: Incoming) -> OfPerson[Any]:
        body = await incoming.body(model) if model is not None else None
        return OfPerson(incoming.path["profile"], body)

    return read


def _people(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    people = catalogue.people
    path, one = "/v1/admin/people", "/v1/admin/people/{profile}"

    async def listing(incoming: Incoming) -> Listing:
        query = incoming.query(PageQuery)
        return Listing(query.limit, query.cursor)

    def shown(answered: Answered) -> Response:
        return json(shapes.person(answered.result))

    def made(answered: Answered) -> Response:
        return json(shapes.person(answered.result), 201)

    def listed(answered: Answered) -> Response:
        return json(shapes.page(answered.result, shapes.profile))

    def merged(answered: Answered) -> Response:
        return json(shapes.merge(answered.result))

    shape, identities = shapes.PersonShape, f"{one}/identities"
    return (
        row("GET", path, people.list, listing, listed, shape=list[shapes.ProfileShape], query=PageQuery),
        row("POST", path, people.add, reads(PersonBody), made, shape=shape, body=PersonBody, status=201),
        row("GET", one, people.show, _of_person(None), shown, shape=shape),
        row("PATCH", one, people.change, _of_person(PersonPatch), shown, shape=shape, body=PersonPatch),
        row("DELETE", one, people.disable, _of_person(None), _no_content, status=204),
        row("PUT", f"{one}/roles", people.set_roles, _of_person(RolesBody), shown, shape=shape, body=RolesBody),
        Endpoint(
            method="POST",
            path=f"{one}/merge",
            operations=(people.merge, people.preview_merge),
            choose=people.merging,
            name="people.merge",
            read=_of_person(MergeBody),
            write=merged,
            summary="Makes one person of two profiles, or says what that would move.",
            shape=shapes.MergeShape,
            body=MergeBody,
        ),
        row("POST", identities, people.link, _of_person(IdentityBody), shown, shape=shape, body=IdentityBody),
        row("DELETE", identities, people.unlink, _of_person(IdentityBody), _no_content, body=IdentityBody, status=204),
    )


def _tokens(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    people = catalogue.people
    path = "/v1/admin/people/{profile}/tokens"

    async def revoked(incoming: Incoming) -> OfPerson[str]:
        return OfPerson(incoming.path["profile"], incoming.path["token"])

    def made(answered: Answered) -> Response:
        return json(shapes.new_token(answered.result), 201)

    def listed(answered: Answered) -> Response:
        return json(shapes.page(answered.result, shapes.token))

    shape = shapes.TokenShape
    return (
        row("GET", path, people.tokens, _of_person(None), listed, shape=list[shapes.TokenShape]),
        row("POST", path, people.create_token, _of_person(TokenBody), made, shape=shape, body=TokenBody, status=201),
        row("DELETE", f"{path}/{{token}}", people.revoke_token, revoked, _no_content, status=204),
    )


# ── agents ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _agents(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    agents, path = catalogue.agents, "/v1/admin/agents"

    async def one(incoming: Incoming) -> OfAgent:
        return OfAgent(incoming.path["agent"])

    def shown(answered: Answered) -> Response:
        return json(shapes.agent(answered.result))

    def made(answered: Answered) -> Response:
        return json(shapes.agent(answered.result), 201)

    def listed(answered: Answered) -> Response:
        return json(shapes.page(answered.result, shapes.agent))

    shape = shapes.AgentShape
    return (
        row("GET", path, agents.list, nothing, listed, shape=list[shapes.AgentShape]),
        row("POST", path, agents.add, reads(AgentBody), made, shape=shape, body=AgentBody, status=201),
        row("GET", f"{path}/{{agent}}", agents.show, one, shown, shape=shape),
    )


# ── policy ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _policy(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    policy, path = catalogue.policy, "/v1/admin/policy"

    async def versions(incoming: Incoming) -> Versions:
        query = incoming.query(PageQuery)
        return Versions(query.limit, query.cursor)

    async def of_version(incoming: Incoming) -> OfVersion:
        number = incoming.path["version"]
        if not number.isascii() or not number.isdigit() or len(number) > 18:
            raise Invalid.of("version", "number", "A version is a number; GET /v1/admin/policy/versions lists them.")
        return OfVersion(int(number))

    def shown(answered: Answered) -> Response:
        return json(shapes.policy(answered.result))

    def listed(answered: Answered) -> Response:
        return json(shapes.page(answered.result, shapes.listed_version))

    def published(answered: Answered) -> Response:
        return json(shapes.version(answered.result))

    shape = shapes.PolicyShape
    return (
        row("GET", path, policy.show, nothing, shown, shape=shape),
        row("PUT", path, policy.publish, reads(PublishBody), shown, shape=shape, body=PublishBody),
        row(
            "GET",
            f"{path}/versions",
            policy.history,
            versions,
            listed,
            shape=list[shapes.ListedVersionShape],
            query=PageQuery,
        ),
        row(
            "GET",
            f"{path}/versions/{{version}}",
            policy.version,
            of_version,
            published,
            shape=shapes.VersionShape,
        ),
        row("POST", f"{path}/versions/{{version}}/rollback", policy.rollback, of_version, shown, shape=shape),
    )


# ── audit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _audit(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    audit, path = catalogue.audit, "/v1/admin/audit"

    async def reading(incoming: Incoming) -> Reading:
        query = incoming.query(AuditQuery)
        return Reading(narrow=_filter(query), limit=query.limit, cursor=query.cursor)

    def listed(answered: Answered) -> Response:
        return json(shapes.page(answered.result, shapes.record))

    def verified(answered: Answered) -> Response:
        return json(shapes.report(answered.result))

    return (
        row("GET", path, audit.read, reading, listed, shape=list[shapes.AuditShape], query=AuditQuery),
        row("GET", f"{path}/verify", audit.verify, nothing, verified, shape=shapes.VerifyShape),
    )


def _filter(query: AuditQuery) -> AuditFilter:
    since: datetime | None = query.since
    until: datetime | None = query.until
    return AuditFilter(
        kind=query.kind,
        person=query.person,
        agent=query.agent,
        session=query.session,
        action=query.action,
        effect=query.effect,
        code=query.code,
        decision=query.decision,
        since=since,
        until=until,
    )
