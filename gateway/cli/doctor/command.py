"""`gateway doctor`: runs every check, of the machine and then of each tenant, and never stops at the first finding."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

import typer

from gateway.app import Gateway
from gateway.backends.local.clock import SystemClock
from gateway.backends.sql.tables import SCHEMA_VERSION
from gateway.cli import output
from gateway.cli.doctor.decisions import Population, policy
from gateway.cli.doctor.findings import Finding, State, fault, fine, shape, tell
from gateway.cli.doctor.keys import keys
from gateway.cli.doctor.machine import configuration, state_folder, versions
from gateway.cli.doctor.workspaces import workspace
from gateway.cli.failures import FOUND, refusals
from gateway.cli.options import AsJson, Config, TenantName
from gateway.cli.references import page_of_people
from gateway.cli.running import Desk, refuse_token, with_gateway
from gateway.errors import ConfigurationFaults, GatewayError
from gateway.identity.credentials import Credentials
from gateway.model import TenantId
from gateway.operations.audit import Reading
from gateway.ports import AuditFilter
from gateway.settings import Settings, load

_SKEW = timedelta(seconds=5)


def doctor(config: Config = None, tenant: TenantName = None, as_json: AsJson = False) -> None:
    """Looks at settings, versions, state, workspaces, policies, audit and clock; only the operator may."""
    with refusals():
        refuse_token()
        found = list(_findings(config, tenant))
    output.show(as_json, {"findings": [shape(one) for one in found]}, lambda _shown: _print(found))
    if any(one.state is State.FAULT for one in found):
        raise typer.Exit(FOUND)


def _findings(config: Path | None, tenant: str | None) -> Iterator[Finding]:
    try:
        settings = load(config, os.environ)
    except ConfigurationFaults as faults:
        yield from configuration("settings", faults)
        return
    yield fine("settings", "Every setting can be used.")
    installed = list(versions())
    yield from (*installed, *state_folder(settings.state.folder))
    # Another Casbin opens nothing, and a folder that is not there is not made by looking for it.
    if all(one.state is State.OK for one in installed) and settings.state.folder.is_dir():
        yield from _opened(settings, tenant)
        yield from keys(settings.state.folder, SystemClock().now())


def _opened(settings: Settings, tenant: str | None) -> list[Finding]:
    """What can only be seen in an open gateway."""

    async def look(gateway: Gateway) -> list[Finding]:
        names = [one.id for one in await gateway.stores.tenants.all() if tenant in (None, one.id)]
        return [finding for name in names for finding in await _of_tenant(gateway, name)]

    try:
        found = with_gateway(settings, look)
    except ConfigurationFaults as faults:
        return list(configuration("schema", faults))
    except GatewayError as error:
        return [fault("store", error.detail, "See whether the disk is full or another program holds the database.")]
    tenants = [] if found else [fault("tenants", "There is none.", "Make one: gateway tenants add NAME --owner EMAIL")]
    return [fine("schema", f"The store has schema {SCHEMA_VERSION}, which this version reads."), *tenants, *found]


async def _of_tenant(gateway: Gateway, tenant: TenantId) -> list[Finding]:
    """One tenant that can't be looked at does not keep the others from it."""
    desk = Desk(gateway, Credentials(operator_of=tenant))
    try:
        return [finding async for finding in _checks(desk, tenant)]
    except GatewayError as error:
        return [fault("tenant", error.detail, "Look at the audit: gateway audit tail --effect error", tenant)]


async def _checks(desk: Desk, tenant: TenantId) -> AsyncIterator[Finding]:
    yield await _clock(desk, tenant)
    agents = (await desk.ask(desk.catalogue.agents.list)).items
    for agent in agents:
        look = partial(workspace, agent, desk.gateway.folders.of(agent))
        for finding in await desk.gateway.folders.run(look):
            yield finding
    document = await desk.ask(desk.catalogue.policy.show)
    people = (await page_of_people(desk, None)).items
    population = Population(tenant=tenant, people=people, agents=[agent.name for agent in agents])
    chance = Random()  # noqa: S311 - picks a sample, another at each run
    for finding in await asyncio.to_thread(policy, document.version.text, population, desk.gateway.clock, chance):
        yield finding
    yield await _audit(desk, tenant)


async def _clock(desk: Desk, tenant: TenantId) -> Finding:
    """A clock that was set back would let ended rows and tokens live again."""
    now = desk.gateway.clock.now()
    page = await desk.ask(desk.catalogue.audit.read, lambda: Reading(narrow=AuditFilter(), limit=1, cursor=None))
    newest = page.items[0].record.at if page.items else now
    if newest > now + _SKEW:
        message = f"The clock says {now:%Y-%m-%d %H:%M:%S}, and the audit ends at {newest:%Y-%m-%d %H:%M:%S} UTC."
        return fault("clock", message, "Set the clock of this machine right (NTP).", tenant)
    return fine("clock", f"It is {now:%Y-%m-%d %H:%M:%S} UTC, after all that is in the audit.", tenant)


async def _audit(desk: Desk, tenant: TenantId) -> Finding:
    report = await desk.ask(desk.catalogue.audit.verify)
    if report.faults:
        todo = "Keep the database as it is, and find out who could write it: gateway audit verify"
        return fault(
            "audit",
            f"{output.counted(len(report.faults), 'fault')} in {output.counted(report.records, 'record')}.",
            todo,
            tenant,
        )
    return fine("audit", f"Nobody changed {output.counted(report.records, 'record')}.", tenant)


def _print(found: list[Finding]) -> None:
    for finding in found:
        tell(finding)
    faults = sum(one.state is State.FAULT for one in found)
    output.say(f"{output.counted(faults, 'fault')}." if faults else "Nothing is wrong.")
