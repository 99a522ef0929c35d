"""Turns each kind of store into the fixture that its contract suites run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.backends.stores import (
    ACME,
    ALICE,
    BOB,
    CAROL,
    DANA,
    GLOBEX,
    NOW,
    Factory,
    Stores,
    a_profile,
    postgres_stores,
    sqlite_stores,
)


@pytest.fixture(params=["sqlite", "postgres"])
def factory(request: pytest.FixtureRequest) -> Factory:
    """Opens all ports over a folder; opening it again finds what was stored."""
    if request.param == "sqlite":
        return sqlite_stores
    return postgres_stores(request.getfixturevalue("postgres"))


@pytest.fixture
async def stores(factory: Factory, tmp_path: Path) -> AsyncIterator[Stores]:
    """All ports, with two tenants and four people in the first."""
    async with factory(tmp_path) as opened:
        for tenant in (ACME, GLOBEX):
            await opened.tenants.add(tenant, demo=False, now=NOW)
        for person in (ALICE, BOB, CAROL, DANA):
            await opened.identities.add_profile(a_profile(person))
        yield opened
