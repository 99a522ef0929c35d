"""The rows of the table that say who can and what can."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from gateway.model import Action, AgentName
from gateway.operations.catalogue import Catalogue
from gateway.operations.reach import WhatCanAsked, WhoCanAsked, WhoCanWords
from gateway.web.api import shapes_reach
from gateway.web.api.endpoint import Answered, Endpoint, Incoming, Query, json, row
from gateway.web.api.for_people import PageQuery

Word = Annotated[str, Field(min_length=1, max_length=512)]


class WhoCanQuery(WhoCanWords, PageQuery):
    """The question, and where the list goes on."""

    model_config = Query.model_config


class WhatCanQuery(PageQuery):
    """Whose reach, and what to list the sessions by."""

    person: Word
    action: Action = Action.HISTORY
    agent: Word | None = None


def for_reach(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    """The rows."""
    reach, path = catalogue.reach, "/v1/admin/policy"

    async def who(incoming: Incoming) -> WhoCanAsked:
        query = incoming.query(WhoCanQuery)
        return WhoCanAsked(query, query.limit, query.cursor)

    async def what(incoming: Incoming) -> WhatCanAsked:
        query = incoming.query(WhatCanQuery)
        agent = None if query.agent is None else AgentName(query.agent)
        return WhatCanAsked(
            person=query.person, action=query.action, agent=agent, limit=query.limit, cursor=query.cursor
        )

    def people(answered: Answered) -> Response:
        return json(shapes_reach.who_can(answered.result))

    def sessions(answered: Answered) -> Response:
        return json(shapes_reach.what_can(answered.result))

    able, reachable = list[shapes_reach.AbleShape], shapes_reach.ReachShape
    return (
        row("GET", f"{path}/who-can", reach.who_can, who, people, shape=able, query=WhoCanQuery),
        row("GET", f"{path}/what-can", reach.what_can, what, sessions, shape=reachable, query=WhatCanQuery),
    )
