"""The rows of the table that say what a draft would change, and what a version did change."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from gateway.operations.catalogue import Catalogue
from gateway.operations.preview import PreviewBody, Watching
from gateway.web.api import shapes_preview
from gateway.web.api.endpoint import Answered, Endpoint, Incoming, Query, json, reads, row


class WatchQuery(Query):
    """Which version is looked back on; the one in force, if none is named."""

    version: Annotated[int | None, Field(ge=1, le=2**53)] = None


def for_preview(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    """The rows."""
    operations, path = catalogue.preview, "/v1/admin/policy"

    async def watching(incoming: Incoming) -> Watching:
        return Watching(incoming.query(WatchQuery).version)

    def shown(answered: Answered) -> Response:
        return json(shapes_preview.preview(answered.result))

    preview, watch, shape = operations.preview, operations.watch, shapes_preview.PreviewShape
    return (
        row("POST", f"{path}/preview", preview, reads(PreviewBody), shown, shape=shape, body=PreviewBody),
        row("GET", f"{path}/watch", watch, watching, shown, shape=shape, query=WatchQuery),
    )
