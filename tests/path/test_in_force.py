"""How long a published policy takes until it decides (design section 7, freshness), as operators see it."""

from __future__ import annotations

from datetime import timedelta

from gateway.backends.sql.database import Database
from gateway.backends.sql.policies import SqlPolicies
from gateway.policy.shipped import shipped
from tests.clock import SettableClock
from tests.house import House


def observed(home: House) -> tuple[float, float]:
    """How many versions came in force here, and the seconds that they took in all."""
    sample = home.gateway.metrics.registry.get_sample_value
    return (
        sample("gateway_policy_in_force_seconds_count") or 0.0,
        sample("gateway_policy_in_force_seconds_sum") or 0.0,
    )


async def test_the_time_from_publish_to_force_is_measured_here_and_from_elsewhere(
    home: House, clock: SettableClock
) -> None:
    """Issue: a metric for the time from publish to force: until the change is heard, not until the next question."""
    await home.get("alice", "/v1/me")
    assert observed(home) == (0, 0)  # the version that was in force when it started says nothing

    await home.publish(shipped("default.csv") + "# once more\n")
    await home.get("alice", "/v1/me")
    assert observed(home) == (1, 0)

    async with Database(home.gateway.settings.state.folder / "gateway.sqlite") as elsewhere:
        # Heard by this poll or by one that the gateway makes of its own accord a moment sooner.
        then = clock.now() - timedelta(seconds=0.4)
        await SqlPolicies(elsewhere).publish(
            home.tenant, shipped("default.csv"), base_version=2, comment="", author="olga", now=then
        )
    await home.gateway.epochs.poll()
    clock.advance(3)  # nobody asks anything meanwhile
    await home.gateway.epochs.poll()
    await home.get("alice", "/v1/me")
    assert observed(home) == (2, 0.4)
    await home.add("frank", "member")  # another epoch, the same version
    await home.get("frank", "/v1/me")
    assert observed(home) == (2, 0.4)
