"""What `gateway policy pull`, `diff` and `push` share: which document is meant, and what is in force."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli.policy_files import Place
from gateway.cli.running import Desk
from gateway.errors import Invalid
from gateway.operations.policy import InForce
from gateway.policy.document_files import text_of

FOLDER: Final = Path("policies")
Where = Annotated[
    Path, typer.Argument(metavar="PATH", help="A folder, for the visibility.csv in it, or a document (*.csv).")
]


async def in_force(desk: Desk) -> InForce:
    """The version in force, for whoever may read it."""
    found: InForce = await desk.ask(desk.catalogue.policy.show)
    return found


def document_in(place: Place) -> str:
    """The text of the document. Raises Invalid where there is none, or nothing that could be one."""
    held = place.held()
    if held is None:
        message = f"There is no {place.document}. Get what is in force: gateway policy pull {place.document}"
        raise Invalid.of("PATH", "document", message)
    return text_of(held, place.document)
