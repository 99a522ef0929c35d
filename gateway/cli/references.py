"""Turns what somebody calls a person into that person's id."""

from __future__ import annotations

from collections.abc import AsyncIterator

from gateway.cli.running import Desk
from gateway.errors import Invalid, NotFound
from gateway.identity.emails import fold
from gateway.keys import is_profile_id
from gateway.model import Profile
from gateway.operations.people_arguments import Listing
from gateway.ports import Page

_PAGE = 200


async def person_id(desk: Desk, reference: str) -> str:
    """The profile of that id, email or unique name; names and emails need the right to list people.

    Raises NotFound for one that nobody has, Invalid with the ids for a name that several have.
    """
    if is_profile_id(reference):
        return reference
    found = [profile async for profile in everybody(desk) if _is_called(profile, reference)]
    if len(found) == 1:
        return found[0].id
    if found:
        ids = ", ".join(profile.id for profile in found)
        raise Invalid.of("PERSON", "unique", f"Several people are called {reference}; give the id of one: {ids}")
    error = NotFound()
    error.add_note(f"Nobody here has the name or email {reference}: gateway people list")
    raise error


async def everybody(desk: Desk) -> AsyncIterator[Profile]:
    """All unmerged profiles, page by page."""
    cursor: str | None = None
    while True:
        page = await page_of_people(desk, cursor)
        for profile in page.items:
            yield profile
        cursor = page.next_cursor
        if cursor is None:
            return


async def page_of_people(desk: Desk, cursor: str | None) -> Page[Profile]:
    """Unmerged profiles, as many as one page holds."""
    page: Page[Profile] = await desk.ask(desk.catalogue.people.list, lambda: Listing(_PAGE, cursor))
    return page


def _is_called(profile: Profile, reference: str) -> bool:
    return fold(reference) in profile.emails if "@" in reference else profile.name == reference
