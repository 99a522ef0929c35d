"""Turns a session that somebody is in into tool calls from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from gateway.leak_test.driver import Driver, Probe, Seen, Shows, Twin, in_path
from gateway.leak_test.driving.targets import few_sessions, victims
from gateway.leak_test.markers import Mark
from gateway.leak_test.world import Caller, Person, PlantedSession, World
from gateway.model import Action

TOOL_ROUTE = "POST /v1/sessions/{session}/tools/{tool}"


def tool_row(tool: str) -> str:
    """What a report calls it."""
    return TOOL_ROUTE.replace("{tool}", tool)


@dataclass(frozen=True)
class Bench:
    """A caller inside `origin`; `thorough` where everything is asked about everybody, and not only a part."""

    driver: Driver
    caller: Caller
    origin: PlantedSession
    thorough: bool

    @property
    def world(self) -> World:
        """What is planted."""
        return self.driver.world

    @property
    def elsewhere(self) -> str:
        """Another agent."""
        return next(agent for agent in self.world.agents if agent != self.origin.agent)

    @cached_property
    def targets(self) -> list[PlantedSession]:
        """The sessions that are asked about: all from one place, a few of everybody from the others."""
        return self.world.sessions if self.thorough else few_sessions(self.world)

    @cached_property
    def victims(self) -> list[Person]:
        """Everybody that something was planted for."""
        return list(victims(self.world))

    def may(self, action: Action, session: PlantedSession) -> bool:
        """Whether the policy lets the caller do that to the session from here."""
        return self.driver.expectation.session(self.caller, self.origin, action, session)

    def target(self, tool: str) -> str:
        """The path of a tool."""
        return f"/v1/sessions/{in_path(self.origin.key)}/tools/{tool}"

    def probe(
        self,
        tool: str,
        body: Mapping[str, object],
        shows: Shows,
        *,
        due: tuple[Mark, ...] = (),
        twin: Twin | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> Probe:
        """One call."""
        return Probe(
            caller=self.caller,
            row=tool_row(tool),
            method="POST",
            target=self.target(tool),
            body=dict(body),
            headers=headers,
            origin=self.origin,
            shows=shows,
            due=due,
            twin=twin,
        )

    async def call(
        self,
        tool: str,
        body: Mapping[str, object],
        shows: Shows,
        *,
        due: tuple[Mark, ...] = (),
        twin: Twin | None = None,
    ) -> Seen:
        """The answer to one call."""
        return await self.driver.send(self.probe(tool, body, shows, due=due, twin=twin))
