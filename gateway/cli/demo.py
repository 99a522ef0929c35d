"""Makes the demo tenant at the first start, with two sessions in it, and prints how to try them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.app import Gateway
from gateway.cli import output
from gateway.cli.running import Desk
from gateway.errors import ConfigurationFaults, Fault, PreconditionFailed
from gateway.founding import DEMO, DEMO_AGENT, DEMO_PEOPLE
from gateway.identity.credentials import Credentials
from gateway.model import SessionFacts
from gateway.operations.me import Myself
from gateway.operations.sessions import CreateBody, Listing, OnAgent
from gateway.policy.shipped import shipped
from gateway.ports import Page
from gateway.tools.arguments import parse
from gateway.tools.personal_instructions import Saving

_PACKAGE = Path(__file__).parents[1]
_GROUP = "Late arrivals"
_EMPTY = "-H 'Content-Type: application/json' -d '{}'"
_INSTRUCTIONS = """\
# How to answer me

- Briefly, three sentences at most.
- Times in 24 hours, local to the airport.
- My language is English; names of places as they are spelled there.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What the first start made: secrets by name, alice's private session, and a group of alice and bob."""

    secrets: dict[str, str]
    private: str
    group: str


async def make_demo(gateway: Gateway) -> Demo | None:
    """The demo, or None where its tokens were told already. Raises ConfigurationFaults for another tenant of its name.

    A start that was killed before it told them is made up for, with new tokens.
    """
    there = await gateway.stores.tenants.find(DEMO)
    if there is not None and not there.demo:
        message = f"is on, but the tenant {DEMO} here is not the demo; switch it off, or name another state folder"
        raise ConfigurationFaults([Fault(field="demo.enabled", rule="demo_tenant", message=message)])
    if there is not None and _told(gateway).exists():
        return None
    secrets = await gateway.founder.found_demo(shipped("demo/visibility.csv"), example_workspace())
    return await _filled(gateway, secrets)


def remember_told(gateway: Gateway) -> None:
    """Notes in the state folder that the tokens have been printed, so that no later start makes others."""
    _told(gateway).touch(mode=0o600)


def tell(demo: Demo | None, url: str) -> None:
    """Prints people, roles, tokens and what to try; on a later start only how to get another token."""
    if demo is None:
        output.say("The demo's tokens were printed at its first start. For another: gateway token create alice")
        return
    output.say("The tenant demo, with the agent flight. These tokens are shown this once:")
    output.say()
    output.table(("person", "role", "token"), [(name, role, demo.secrets[name]) for name, role in DEMO_PEOPLE])
    output.say()
    output.say("Alice's context in her private session: the team's files, then her own.")
    output.say(_curl(f"{url}/v1/sessions/{demo.private}/context", demo.secrets["alice"], _EMPTY))
    output.say("Bob asks for alice's session, and might as well ask for one that does not exist.")
    output.say(_curl(f"{url}/v1/sessions/{demo.private}", demo.secrets["bob"], "-i"))
    output.say("The context of their group: no MEMORY.md, and the manifest says why.")
    output.say(_curl(f"{url}/v1/sessions/{demo.group}/context", demo.secrets["alice"], _EMPTY))
    output.say()


def example_workspace() -> Path:
    """The example: from inside an installed wheel, else from the clone that holds the package."""
    wheel = _PACKAGE / "_shipped" / "workspaces"
    return (wheel if wheel.is_dir() else _PACKAGE.parent / "workspaces") / DEMO / DEMO_AGENT


def _told(gateway: Gateway) -> Path:
    return gateway.settings.state.folder / "demo-told"


async def _filled(gateway: Gateway, secrets: dict[str, str]) -> Demo:
    """The two sessions and alice's instructions, made by alice and bob themselves."""
    alice, bob = (Desk(gateway, Credentials.bearer(secrets[name])) for name in ("alice", "bob"))
    with suppress(PreconditionFailed):  # a start that was killed has written them
        await alice.ask(gateway.catalogue.instructions.save, lambda: Saving(DEMO_AGENT, _INSTRUCTIONS, None))
    return Demo(secrets=secrets, private=await _open(alice, {"kind": "direct"}), group=await _group(alice, bob))


async def _group(alice: Desk, bob: Desk) -> str:
    """The group of alice and bob, or the one that a start that was killed has opened."""
    wanted = Listing(agent=DEMO_AGENT, kind="group", relation=None, query=_GROUP, limit=1, cursor=None)
    there: Page[SessionFacts] = await alice.ask(alice.catalogue.sessions.list, lambda: wanted)
    if there.items:
        return there.items[0].session.key
    bobs: Myself = await bob.ask(bob.catalogue.me.show)
    wanted_people = [bobs.requester.profile.id]
    return await _open(alice, {"kind": "group", "participants": wanted_people, "title": _GROUP})


async def _open(desk: Desk, wanted: dict[str, object]) -> str:
    facts, _ = await desk.ask(desk.catalogue.sessions.create, lambda: OnAgent(DEMO_AGENT, parse(CreateBody, wanted)))
    return str(facts.session.key)


def _curl(url: str, token: str, option: str) -> str:
    return f"  curl -s -H 'Authorization: Bearer {token}' {option} {url}"
