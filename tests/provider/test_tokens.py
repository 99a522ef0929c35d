"""Access tokens of a certified provider, end to end: of a person, of a service, and after its keys were rotated."""

from __future__ import annotations

import httpx2

from tests.clock import RunningClock
from tests.house import House
from tests.provider.running import PHONE, Provider

ME = "/v1/me"
REFRESH_S = 300  # docs/identity: a key that was rotated out stops working after this long
COOL_DOWN_S = 30


async def bearer(home: House, token: str, path: str = ME, method: str = "GET", body: object = None) -> httpx2.Response:
    """A request with the provider's token and nothing else."""
    return await home.send(None, method, path, body, headers={"Authorization": f"Bearer {token}"})


async def later(home: House, clock: RunningClock, seconds: float) -> None:
    """Some time after, and the store was heard in between, as it always is."""
    clock.advance(seconds)
    await home.gateway.epochs.poll()


async def test_a_person_who_signed_in_at_the_provider_is_the_profile_they_are_linked_to(
    behind: House, provider: Provider
) -> None:
    """Issue 3, "what it must show" 1: a code flow with PKCE at a provider that none of us wrote; its token is alice."""
    for client in ("console", PHONE):
        tokens = provider.person_tokens("alice", client=client)
        me = await bearer(behind, tokens["access_token"])

        assert me.status_code == 200, me.text
        assert me.json()["profile"]["id"] == behind.id("alice")
        assert me.json()["credential"]["kind"] == "oidc"

        # The same sign-in's ID token says to the client who signed in, and is no right to call us.
        assert (await bearer(behind, tokens["id_token"])).status_code == 401


async def test_a_verified_email_of_the_provider_links_and_an_unverified_one_does_not(
    behind: House, provider: Provider
) -> None:
    """Design section 5, "identity key"; the claims are the provider's own."""
    dana = await bearer(behind, provider.person_tokens("dana")["access_token"])
    bob = await bearer(behind, provider.person_tokens("bob")["access_token"])

    assert dana.json()["profile"]["id"] == behind.id("dana")
    assert (bob.status_code, bob.json()["code"]) == (401, "unauthenticated")


async def test_a_token_for_another_resource_is_refused(behind: House, provider: Provider) -> None:
    """RFC 8707: the provider signs for the resource that the client named; without one the token is opaque."""
    for_nobody = provider.person_tokens("alice", resource=None)["access_token"]
    answer = await bearer(behind, for_nobody)

    assert for_nobody.count(".") == 0
    assert answer.status_code == 401


async def test_a_service_has_the_scopes_of_its_token_and_without_one_calls_nothing(
    behind: House, provider: Provider
) -> None:
    """Client credentials (RFC 6749 section 4.4); ibmi-mcp-server#189: scopes are enforced, not only parsed."""
    sessions = "/v1/agents/flight/sessions"
    group = {"kind": "group", "name": "night-shift"}

    with_scope = await bearer(behind, provider.service_token(scope="session"), sessions, "POST", group)
    assert with_scope.status_code == 201, with_scope.text
    before = (await bearer(behind, provider.service_token(scope="session"), sessions)).json()["items"]

    for scope in ("", "memory"):
        refused = await bearer(
            behind, provider.service_token(scope=scope), sessions, "POST", {"kind": "group", "name": "day-shift"}
        )
        assert refused.status_code == 403, refused.text
        assert refused.json()["code"] == "tool_not_allowed"
    after = (await bearer(behind, provider.service_token(scope="session"), sessions)).json()["items"]
    assert after == before


async def test_a_rotated_out_key_ends_within_its_bound_and_a_new_one_counts_at_once(
    behind: House, provider: Provider, running_clock: RunningClock
) -> None:
    """idenplane#205: within `refresh_s`; and an unknown key is fetched once in a cool-down, however many bring one."""
    old = provider.person_tokens("alice")["access_token"]
    assert (await bearer(behind, old)).status_code == 200
    fetched = provider.fetches()

    provider.rotate()
    new = provider.person_tokens("alice")["access_token"]
    await later(behind, running_clock, COOL_DOWN_S)
    assert (await bearer(behind, new)).status_code == 200
    assert provider.fetches() == fetched + 1
    assert (await bearer(behind, old)).status_code == 401  # the key set is known without its key

    provider.rotate()
    newest = provider.person_tokens("alice")["access_token"]
    for _ in range(5):
        assert (await bearer(behind, newest)).status_code == 401  # the cool-down lasts
    assert provider.fetches() == fetched + 1
    await later(behind, running_clock, COOL_DOWN_S)
    assert (await bearer(behind, newest)).status_code == 200
    assert provider.fetches() == fetched + 2


async def test_a_rotated_out_key_ends_by_itself_when_nobody_brings_a_new_one(
    behind: House, provider: Provider, running_clock: RunningClock
) -> None:
    """idenplane#205: a token in use all the time does not outlive its key by more than `refresh_s`."""
    token = provider.person_tokens("alice")["access_token"]
    assert (await bearer(behind, token)).status_code == 200

    provider.rotate()
    await later(behind, running_clock, REFRESH_S - 60)
    assert (await bearer(behind, token)).status_code == 200
    await later(behind, running_clock, 60)
    assert (await bearer(behind, token)).status_code == 401
