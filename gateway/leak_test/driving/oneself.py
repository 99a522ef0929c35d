"""What everybody has for themselves, and what of it another person's id in the path would open."""

from __future__ import annotations

from gateway.leak_test.driver import Driver, Probe, Twin
from gateway.leak_test.driving.targets import victims
from gateway.leak_test.markers import Mark, Sort
from gateway.leak_test.world import Caller, PlantedFile
from gateway.model import Action

_OWN = {Sort.EMAIL: Action.READ, Sort.TOKEN: Action.READ}


def _mine(driver: Driver, caller: Caller, sort: Sort) -> tuple[Mark, ...]:
    return tuple(one for one in driver.world.marks.all if one.sort is sort and one.where is caller.person)


async def _get(driver: Driver, caller: Caller, path: str, due: tuple[Mark, ...] = ()) -> None:
    await driver.send(Probe(caller=caller, row=f"GET {path}", method="GET", target=path, shows=_OWN, due=due))


async def me(driver: Driver, caller: Caller) -> None:
    """`GET /v1/me`."""
    await _get(driver, caller, "/v1/me")


async def agents(driver: Driver, caller: Caller) -> None:
    """`GET /v1/agents`."""
    await _get(driver, caller, "/v1/agents")


async def tools(driver: Driver, caller: Caller) -> None:
    """`GET /v1/tools`."""
    await _get(driver, caller, "/v1/tools")


async def tokens(driver: Driver, caller: Caller) -> None:
    """`GET /v1/me/tokens`."""
    await _get(driver, caller, "/v1/me/tokens")


async def sign_ins(driver: Driver, caller: Caller) -> None:
    """`GET /v1/me/sign-ins`."""
    await _get(driver, caller, "/v1/me/sign-ins")


async def notices(driver: Driver, caller: Caller) -> None:
    """`GET /v1/me/notices`."""
    await _get(driver, caller, "/v1/me/notices")


async def new_token(driver: Driver, caller: Caller) -> None:
    """`POST /v1/me/tokens`, with more scopes than there are."""
    body = {"name": "more", "expires_in_days": 1, "scopes": ["everything"]}
    row = "POST /v1/me/tokens"
    await driver.send(Probe(caller=caller, row=row, method="POST", target="/v1/me/tokens", body=body, shows=_OWN))


async def revoking_tokens(driver: Driver, caller: Caller) -> None:
    """`DELETE /v1/me/tokens/{token}`: another's is not there."""
    for victim in victims(driver.world):
        if victim is not caller.person:
            await _delete(driver, caller, "/v1/me/tokens", "{token}", victim.token, victim.name)


async def revoking_sign_ins(driver: Driver, caller: Caller) -> None:
    """`DELETE /v1/me/sign-ins/{sign_in}`."""
    row, path = "DELETE /v1/me/sign-ins/{sign_in}", "/v1/me/sign-ins/sgn_" + "0" * 26
    await driver.send(Probe(caller=caller, row=row, method="DELETE", target=path))


async def _delete(driver: Driver, caller: Caller, path: str, word: str, real: str, whose: str) -> None:
    other = "tok_" + "0" * 26
    twin = Twin(target=f"{path}/{other}", real=real, other=other, whose=whose, what=f"{whose}'s access token")
    probe = Probe(caller=caller, row=f"DELETE {path}/{word}", method="DELETE", target=f"{path}/{real}", twin=twin)
    await driver.send(probe)


async def instructions(driver: Driver, caller: Caller) -> None:
    """`GET /v1/agents/{agent}/personal-instructions`, and in the path what could be another's."""
    for agent in driver.world.agents:
        files = [one for one in driver.world.files if _is_of(one, caller, agent)]
        due = tuple(one.mark for one in files if one.mark is not None)
        await _instructions(driver, caller, agent, due)
    for victim in victims(driver.world):
        await _instructions(driver, caller, f"flight%2Fusers%2F{victim.id}", ())


def _is_of(file: PlantedFile, caller: Caller, agent: str) -> bool:
    return file.owner is not None and file.owner is caller.person and (file.agent, file.loads_as) == (agent, "personal")


async def _instructions(driver: Driver, caller: Caller, agent: str, due: tuple[Mark, ...]) -> None:
    row, path = "GET /v1/agents/{agent}/personal-instructions", f"/v1/agents/{agent}/personal-instructions"
    shows = {Sort.FILE: Action.GET}
    await driver.send(Probe(caller=caller, row=row, method="GET", target=path, shows=shows, due=due))


async def saving(driver: Driver, caller: Caller) -> None:
    """`PUT /v1/agents/{agent}/personal-instructions` from what was never read: the conflict tells one's own hash."""
    row = "PUT /v1/agents/{agent}/personal-instructions"
    for agent in driver.world.agents:
        path, body = f"/v1/agents/{agent}/personal-instructions", {"content": "Short."}
        stale = ((b"if-match", b'"' + b"0" * 64 + b'"'),)
        shows = {Sort.FILE: Action.EDIT}
        await driver.send(
            Probe(caller=caller, row=row, method="PUT", target=path, body=body, headers=stale, shows=shows)
        )
