"""The rows of the table that connectors use: services that bring the messages of a channel."""

from __future__ import annotations

from starlette.responses import Response

from gateway.operations.catalogue import Catalogue
from gateway.operations.channel_turns import Asking, ChannelTurns
from gateway.operations.connectors import Brought, ChannelTurnBody, Members, MembersBody, Permitted
from gateway.stages.record_audit import Trail
from gateway.web.api import shapes
from gateway.web.api.endpoint import Answered, Endpoint, Incoming, json


def for_connectors(catalogue: Catalogue, turns: ChannelTurns) -> tuple[Endpoint, ...]:
    """The rows."""
    operations = catalogue.connectors

    async def brought(incoming: Incoming) -> Brought:
        body: ChannelTurnBody = await incoming.body(ChannelTurnBody)
        return Brought(
            channel=incoming.path["channel"],
            account=body.account,
            sender=body.sender,
            chat=body.chat.kind,
            chat_id=body.chat.id,
            text=body.text,
        )

    async def members(incoming: Incoming) -> Members:
        body: MembersBody = await incoming.body(MembersBody)
        return Members(
            channel=incoming.path["channel"],
            account=body.account,
            chat=body.chat.kind,
            chat_id=body.chat.id,
            joined=tuple(body.joined),
            left=tuple(body.left),
            ended=body.ended,
        )

    async def as_sender(permitted: Permitted, trail: Trail) -> object:
        asking = Asking(trail.request, trail.surface)
        await turns.speak(permitted, asking)
        return await turns.answer(permitted, asking)

    def no_content(_answered: Answered) -> Response:
        return Response(status_code=204, headers={"Cache-Control": "no-store"})

    return (
        Endpoint(
            method="POST",
            path="/v1/connectors/{channel}/turns",
            operations=(operations.turn,),
            read=brought,
            then=as_sender,
            write=lambda answered: json(shapes.channel_turn(answered.result)),
            body=ChannelTurnBody,
            shape=shapes.ChannelTurnShape,
            summary=operations.turn.summary,
        ),
        Endpoint(
            method="POST",
            path="/v1/connectors/{channel}/members",
            operations=(operations.members,),
            read=members,
            write=no_content,
            body=MembersBody,
            status=204,
            summary=operations.members.summary,
        ),
    )
