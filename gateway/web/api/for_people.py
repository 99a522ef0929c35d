"""The rows of the table that everybody uses: oneself, sessions, messages, context, tools, instructions."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.responses import Response

from gateway.errors import Invalid, PreconditionRequired
from gateway.operations.catalogue import Catalogue
from gateway.operations.context import ContextBody, OfSession
from gateway.operations.me import OfSignIn, OfToken
from gateway.operations.people_arguments import TokenBody
from gateway.operations.sessions import (
    CreateBody,
    Listing,
    MessageBody,
    OfMessages,
    OnAgent,
    OnSession,
    OwnerBody,
    PatchBody,
)
from gateway.stages.open_session import Entry
from gateway.tools.arguments import Arguments
from gateway.tools.personal_instructions import Reading, Saving
from gateway.tools.registry import AnyOperation
from gateway.web.api import shapes
from gateway.web.api.endpoint import Answered, Endpoint, Incoming, Query, json
from gateway.web.api.notices import NoticeShape, notice

Limit = Annotated[int, Field(ge=1, le=200)]
Cursor = Annotated[str, Field(min_length=1, max_length=512)]


class PageQuery(Query):
    """Where a list goes on."""

    limit: Limit = 50
    cursor: Cursor | None = None


class SessionsQuery(PageQuery):
    """How a list of sessions is narrowed."""

    kind: str | None = None
    relation: str | None = None
    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class InstructionsBody(Arguments):
    """`PUT /v1/agents/{agent}/personal-instructions`."""

    content: str


def for_people(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    """The rows, the busiest first."""
    return (
        _tool_calls(catalogue),
        *_sessions(catalogue),
        *_instructions(catalogue),
        *_myself(catalogue),
    )


def inside(incoming: Incoming, _arguments: Any) -> Entry:
    """Asked from inside the session of the path."""
    return Entry(incoming.path["session"])


async def nothing(_incoming: Incoming) -> None:
    """No arguments."""
    return


async def on_session(incoming: Incoming) -> OnSession[None]:
    """The session of the path."""
    return OnSession(incoming.path["session"], None)


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool_calls(catalogue: Catalogue) -> Endpoint:
    async def read(incoming: Incoming) -> Any:
        tool = catalogue.tools.find(incoming.path["tool"])
        if tool is None:
            raise Invalid.of("tool", "unknown_tool", "There is no tool of that name; GET /v1/tools lists them.")
        return await incoming.body(tool.arguments)

    def choose(arguments: Arguments) -> AnyOperation:
        return catalogue.tools.of(arguments).choose(arguments)

    return Endpoint(
        method="POST",
        path="/v1/sessions/{session}/tools/{tool}",
        operations=tuple(operation for tool in catalogue.tools.all() for operation in tool.operations),
        choose=choose,
        name="tools.call",
        enters=inside,
        read=read,
        write=lambda answered: json({"status": "ok", "result": answered.result, "decision": answered.decision}),
        body=Arguments,
        shape=shapes.ToolAnswer,
        summary="Calls a tool from inside a session; its arguments are the body.",
    )


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sessions(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    sessions = catalogue.sessions
    path = "/v1/sessions/{session}"

    async def create(incoming: Incoming) -> OnAgent:
        return OnAgent(incoming.path["agent"], await incoming.body(CreateBody))

    async def listing(incoming: Incoming) -> Listing:
        query = incoming.query(SessionsQuery)
        return Listing(
            agent=incoming.path.get("agent"),
            kind=query.kind,
            relation=query.relation,
            query=query.q,
            limit=query.limit,
            cursor=query.cursor,
        )

    async def messages(incoming: Incoming) -> OfMessages:
        query = incoming.query(PageQuery)
        return OfMessages(reference=incoming.path["session"], limit=query.limit, cursor=query.cursor)

    async def posted(incoming: Incoming) -> OnSession[MessageBody]:
        return OnSession(incoming.path["session"], await incoming.body(MessageBody))

    async def patched(incoming: Incoming) -> OnSession[PatchBody]:
        return OnSession(incoming.path["session"], await incoming.body(PatchBody))

    async def reassigned(incoming: Incoming) -> OnSession[OwnerBody]:
        return OnSession(incoming.path["session"], await incoming.body(OwnerBody))

    async def context(incoming: Incoming) -> OfSession:
        return OfSession(incoming.path["session"], await incoming.body(ContextBody))

    def one(method: str, at: str, operation: AnyOperation) -> Endpoint:
        return Endpoint(
            method=method,
            path=at,
            operations=(operation,),
            read=on_session,
            write=_session,
            shape=shapes.SessionShape,
            summary=operation.summary,
        )

    def a_list(at: str) -> Endpoint:
        return Endpoint(
            method="GET",
            path=at,
            operations=(sessions.list,),
            read=listing,
            write=lambda answered: json(shapes.page(answered.result, shapes.session)),
            query=SessionsQuery,
            shape=list[shapes.SessionShape],
            summary=sessions.list.summary,
        )

    return (
        Endpoint(
            method="POST",
            path=f"{path}/context",
            operations=(catalogue.context,),
            read=context,
            enters=lambda incoming, arguments: Entry(incoming.path["session"], kind=arguments.body.turn.kind),
            write=lambda answered: json(shapes.context(answered.result)),
            body=ContextBody,
            shape=shapes.ContextShape,
            summary=catalogue.context.summary,
        ),
        Endpoint(
            method="GET",
            path=f"{path}/messages",
            operations=(sessions.messages,),
            read=messages,
            write=lambda answered: json(shapes.page(answered.result, shapes.message)),
            query=PageQuery,
            shape=list[shapes.MessageShape],
            summary=sessions.messages.summary,
        ),
        Endpoint(
            method="POST",
            path=f"{path}/messages",
            operations=(sessions.post,),
            read=posted,
            enters=inside,
            write=lambda answered: json(shapes.message(answered.result), 201),
            body=MessageBody,
            shape=shapes.MessageShape,
            status=201,
            summary=sessions.post.summary,
        ),
        a_list("/v1/sessions"),
        a_list("/v1/agents/{agent}/sessions"),
        Endpoint(
            method="POST",
            path="/v1/agents/{agent}/sessions",
            operations=(sessions.create, sessions.spawn),
            choose=lambda arguments: sessions.spawn if arguments.body.parent else sessions.create,
            enters=lambda _incoming, arguments: Entry(arguments.body.parent) if arguments.body.parent else None,
            read=create,
            write=_created,
            body=CreateBody,
            shape=shapes.SessionShape,
            status=201,
            responses={200: "The person's private session, which was there already."},
            summary=sessions.create.summary,
        ),
        one("GET", path, sessions.show),
        Endpoint(
            method="PATCH",
            path=path,
            operations=(sessions.rename, sessions.set_participants, sessions.rename_and_set_participants),
            choose=sessions.patch,
            name="sessions.patch",
            read=patched,
            write=_session,
            body=PatchBody,
            shape=shapes.SessionShape,
            summary="Changes the title, or who takes part.",
        ),
        Endpoint(
            method="DELETE",
            path=path,
            operations=(sessions.delete,),
            read=on_session,
            write=lambda _answered: Response(status_code=204, headers={"Cache-Control": "no-store"}),
            status=204,
            summary=sessions.delete.summary,
        ),
        one("POST", f"{path}/archive", sessions.archive),
        one("POST", f"{path}/reset", sessions.reset),
        Endpoint(
            method="PUT",
            path=f"{path}/owner",
            operations=(sessions.set_owner,),
            read=reassigned,
            write=_session,
            body=OwnerBody,
            shape=shapes.SessionShape,
            summary=sessions.set_owner.summary,
        ),
    )


def _session(answered: Answered) -> Response:
    return json(shapes.session(answered.result))


def _created(answered: Answered) -> Response:
    facts, created = answered.result
    return json(shapes.session(facts), 201 if created else 200, {"Location": f"/v1/sessions/{facts.session.id}"})


# ── personal instructions ────────────────────────────────────────────────────────────────────────────────────────────


def _instructions(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    path = "/v1/agents/{agent}/personal-instructions"

    async def reading(incoming: Incoming) -> Reading:
        return Reading(incoming.path["agent"])

    async def saving(incoming: Incoming) -> Saving:
        expected = _expected(incoming.header(b"if-match"), incoming.header(b"if-none-match"))
        body = await incoming.body(InstructionsBody)
        return Saving(incoming.path["agent"], body.content, expected)

    return (
        Endpoint(
            method="GET",
            path=path,
            operations=(catalogue.instructions.read,),
            read=reading,
            write=_with_tag,
            shape=shapes.InstructionsShape,
            summary=catalogue.instructions.read.summary,
        ),
        Endpoint(
            method="PUT",
            path=path,
            operations=(catalogue.instructions.save,),
            read=saving,
            write=_with_tag,
            body=InstructionsBody,
            shape=shapes.InstructionsShape,
            summary=catalogue.instructions.save.summary,
        ),
    )


def _with_tag(answered: Answered) -> Response:
    instructions = answered.result
    tag = {"ETag": f'"{instructions.sha256}"'} if instructions.sha256 is not None else {}
    return json(shapes.instructions(instructions), headers=tag)


def _expected(if_match: str | None, if_none_match: str | None) -> str | None:
    """The hash that was read, or None for "there was no file" (RFC 9110 section 13.1)."""
    if if_match is not None and if_none_match is None:
        if len(if_match) < 2 or not (if_match.startswith('"') and if_match.endswith('"')):
            raise Invalid.of("If-Match", "etag", 'Send the hash that was read, in quotes: If-Match: "…".')
        return if_match[1:-1]
    if if_none_match == "*" and if_match is None:
        return None
    raise PreconditionRequired(
        'Say which version you read: If-Match: "<sha256>", or If-None-Match: * where there was none.'
    )


# ── oneself ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _myself(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    me = catalogue.me

    async def token(incoming: Incoming) -> OfToken:
        return OfToken(incoming.path["token"])

    async def sign_in(incoming: Incoming) -> OfSignIn:
        return OfSignIn(incoming.path["sign_in"])

    async def new_token(incoming: Incoming) -> TokenBody:
        body: TokenBody = await incoming.body(TokenBody)
        return body

    return (
        Endpoint(
            method="GET",
            path="/v1/me",
            operations=(me.show,),
            read=nothing,
            write=lambda answered: json(shapes.me(answered.result)),
            shape=shapes.MeShape,
            summary=me.show.summary,
        ),
        Endpoint(
            method="GET",
            path="/v1/me/notices",
            operations=(me.notices,),
            read=nothing,
            write=lambda answered: json(shapes.page(answered.result, notice)),
            shape=list[NoticeShape],
            summary=me.notices.summary,
        ),
        Endpoint(
            method="GET",
            path="/v1/agents",
            operations=(me.agents,),
            read=nothing,
            write=lambda answered: json(shapes.page(answered.result, shapes.agent)),
            shape=list[shapes.AgentShape],
            summary=me.agents.summary,
        ),
        Endpoint(
            method="GET",
            path="/v1/tools",
            operations=(me.tools,),
            read=nothing,
            write=lambda answered: json(shapes.page(answered.result, shapes.tool)),
            shape=list[shapes.ToolShape],
            summary=me.tools.summary,
        ),
        Endpoint(
            method="GET",
            path="/v1/me/tokens",
            operations=(me.tokens,),
            read=nothing,
            write=lambda answered: json(shapes.page(answered.result, shapes.token)),
            shape=list[shapes.TokenShape],
            summary=me.tokens.summary,
        ),
        Endpoint(
            method="POST",
            path="/v1/me/tokens",
            operations=(me.create_token,),
            read=new_token,
            write=lambda answered: json(shapes.new_token(answered.result), 201),
            body=TokenBody,
            shape=shapes.TokenShape,
            status=201,
            summary=me.create_token.summary,
        ),
        Endpoint(
            method="GET",
            path="/v1/me/sign-ins",
            operations=(me.sign_ins,),
            read=nothing,
            write=lambda answered: json(shapes.page(answered.result, shapes.sign_in)),
            shape=list[shapes.SignInShape],
            summary=me.sign_ins.summary,
        ),
        Endpoint(
            method="DELETE",
            path="/v1/me/sign-ins/{sign_in}",
            operations=(me.revoke_sign_in,),
            read=sign_in,
            write=lambda _answered: Response(status_code=204, headers={"Cache-Control": "no-store"}),
            status=204,
            summary=me.revoke_sign_in.summary,
        ),
        Endpoint(
            method="DELETE",
            path="/v1/me/tokens/{token}",
            operations=(me.revoke_token,),
            read=token,
            write=lambda _answered: Response(status_code=204, headers={"Cache-Control": "no-store"}),
            status=204,
            summary=me.revoke_token.summary,
        ),
    )
