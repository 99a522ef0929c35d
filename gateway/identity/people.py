"""Turns an admin's wishes about people into changes of profiles, roles and links, after every check (design section 5).

Who may ask at all is the policy's decision (`admin/people`), made before these functions run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gateway.errors import Conflict, Fault, Invalid, NotFound
from gateway.identity import emails as addresses
from gateway.identity.outcome import Outcome, Weighing
from gateway.identity.owners import Owners
from gateway.identity.reserved import is_reserved
from gateway.identity.roles import (
    OWNERSHIP,
    PERSON,
    SERVICE,
    is_owner,
    role_faults,
    role_name,
)
from gateway.keys import CHANNEL_ISSUERS, LONGEST_PEER, channel_issuer, is_account, is_channel, is_peer, new_id
from gateway.model import Identity, Profile, ProfileId, Requester, RoleAssignment, TenantId
from gateway.ports import Clock, Identities

_LONGEST_NAME = 200
_LONGEST_ID = 255
_MOST_EMAILS = 20
_LONGEST_NOTICE = 300


class People:
    """Changes to the people of the actor's tenant. Every method raises Unavailable when the store is away."""

    def __init__(self, identities: Identities, owners: Owners, weighing: Weighing, clock: Clock) -> None:
        self._identities = identities
        self._owners = owners
        self._weighing = weighing
        self._clock = clock

    async def add(
        self,
        actor: Requester,
        *,
        name: str,
        emails: Sequence[str] = (),
        roles: Sequence[RoleAssignment] = (),
        kind: str = PERSON,
    ) -> Profile:
        """A new profile.

        Raises Invalid with every fault; ToolNotAllowed for a role that only an owner gives; Conflict for an email that
        another profile holds.
        """
        _refuse([*_name_faults(name), *_email_faults(emails), *role_faults(roles), *_kind_faults(kind)])
        (await self.weigh_newcomer(actor, kind, roles)).check()
        profile = _new_profile(actor.tenant, self._clock, name=name, emails=emails, roles=roles, kind=kind)
        await self._identities.add_profile(profile)
        return profile

    async def change(
        self,
        actor: Requester,
        profile: ProfileId,
        *,
        name: str | None = None,
        emails: Sequence[str] | None = None,
        disabled: bool | None = None,
    ) -> Profile:
        """The profile after what is not None was changed.

        Raises NotFound; Invalid; ToolNotAllowed for somebody with more rights, and for emails that only an owner
        changes; Conflict for a merged profile, for an email that is held, and where the tenant would lose its last
        owner.
        """
        _refuse([*_name_faults(name), *_email_faults(emails)])
        async with self._owners.one_at_a_time:
            target = await self._target(actor, profile)
            outcome = await self.weigh_change(actor, target, emails=emails, disabled=disabled)
            outcome.check()
            if disabled:
                await self._owners.check_one_stays(target)
            fields = {"name": name, "emails": emails, "disabled": disabled}
            what = ", ".join(field for field, value in fields.items() if value is not None)
            changed = await self._identities.change_profile(
                actor.tenant,
                target.id,
                name=_tidied(name),
                emails=_folded(emails),
                disabled=disabled,
                told=outcome.notices(actor, self._clock.now(), "profile", what),
            )
        return _there(changed)

    async def weigh_newcomer(self, actor: Requester, kind: str, roles: Sequence[RoleAssignment]) -> Outcome:
        """Whether the actor may add somebody who holds these."""
        somebody = _new_profile(actor.tenant, self._clock, name="", emails=(), roles=roles, kind=kind)
        return await self._weighing.assign(actor, None, somebody)

    async def weigh_change(
        self, actor: Requester, target: Profile, *, emails: Sequence[str] | None, disabled: bool | None
    ) -> Outcome:
        """Whether the actor may change these of somebody; a name is free to whoever it is."""
        if target.id == actor.profile.id and emails is None and disabled is None:
            return Outcome(owner=is_owner(actor.profile))
        if emails is not None:  # an issuer whose emails are trusted, now or later, signs their holder in
            return await self._weighing.speak_as(actor, target, "An email")
        if disabled is False:
            return await self._weighing.switch_on(actor, target)
        return await self._weighing.change(actor, target)

    async def set_roles(self, actor: Requester, profile: ProfileId, roles: Sequence[RoleAssignment]) -> Profile:
        """The profile with exactly these roles.

        Raises NotFound; Invalid; ToolNotAllowed for one's own roles and those that only an owner gives and takes;
        Conflict for a merged profile, and where the tenant would lose its last owner.
        """
        _refuse(role_faults(roles))
        async with self._owners.one_at_a_time:
            target = await self._target(actor, profile)
            outcome = await self.weigh_roles(actor, target, roles)
            outcome.check()
            if OWNERSHIP not in roles:
                await self._owners.check_one_stays(target)
            wanted = tuple(dict.fromkeys(roles))
            told = outcome.notices(actor, self._clock.now(), "roles", _few_words(map(role_name, wanted)))
            changed = await self._identities.set_roles(actor.tenant, target.id, wanted, told=told)
        return _there(changed)

    async def weigh_roles(self, actor: Requester, target: Profile, roles: Sequence[RoleAssignment]) -> Outcome:
        """Whether the actor may turn the roles of somebody into these."""
        return await self._weighing.assign(actor, target, replace(target, roles=tuple(dict.fromkeys(roles))))

    async def weigh_link(self, actor: Requester, target: Profile) -> Outcome:
        """Whether the actor may link a sign-in to somebody."""
        return await self._weighing.speak_as(actor, target, "A linked sign-in")

    async def weigh_unlink(self, actor: Requester, target: Profile) -> Outcome:
        """Whether the actor may take one away."""
        return await self._weighing.change(actor, target)

    async def link(self, actor: Requester, profile: ProfileId, *, issuer: str, subject: str) -> Identity:
        """The identity, linked to the profile; linking it again changes nothing.

        Raises NotFound; Invalid; ToolNotAllowed for a person, unless an owner asks, and for a service with more rights;
        Conflict where it is another's.
        """
        _refuse([*_identity_faults("issuer", issuer), *_identity_faults("subject", subject)])
        return await self._link(actor, profile, issuer, subject)

    async def link_sender(
        self, actor: Requester, profile: ProfileId, *, channel: str, account: str, sender: str
    ) -> Identity:
        """A sender of a channel, linked to the profile. Raises as `link`."""
        _refuse([*_sender_faults(channel, account, sender)])
        return await self._link(actor, profile, channel_issuer(channel, account), sender)

    async def _link(self, actor: Requester, profile: ProfileId, issuer: str, subject: str) -> Identity:
        target = await self._target(actor, profile)
        outcome = await self.weigh_link(actor, target)
        outcome.check()
        identity = Identity(issuer=issuer, subject=subject, profile=target.id)
        now = self._clock.now()
        told = outcome.notices(actor, now, "linked", _called(identity))
        await self._identities.link(actor.tenant, identity, now, by=actor.profile.id, told=told)
        return identity

    async def unlink(self, actor: Requester, profile: ProfileId, *, issuer: str, subject: str) -> None:
        """Takes exactly this identity from the profile. Raises NotFound, also for a link that is not there."""
        target = await self._target(actor, profile)
        outcome = await self.weigh_unlink(actor, target)
        outcome.check()
        identity = Identity(issuer=issuer, subject=subject, profile=target.id)
        told = outcome.notices(actor, self._clock.now(), "unlinked", _called(identity))
        if not await self._identities.unlink(actor.tenant, identity, told=told):
            raise NotFound

    async def _target(self, actor: Requester, profile: ProfileId) -> Profile:
        target = _there(await self._identities.profile(actor.tenant, profile))
        if target.merged_into is not None:
            facts: dict[str, object] = {"merged_into": target.merged_into}
            raise Conflict("This profile was merged into another; change that one.", facts=facts)
        return target


def check_first_owner(*, name: str, email: str) -> None:
    """Raises Invalid where `add_first_owner` would: so that a tenant is founded with its owner, or not at all."""
    _refuse([*_name_faults(name), *_email_faults([email])])


async def add_first_owner(identities: Identities, clock: Clock, tenant: TenantId, *, name: str, email: str) -> Profile:
    """The first owner of a tenant that has nobody yet (`gateway tenants add NAME --owner EMAIL`).

    Raises Invalid; Conflict where the tenant has people already: then its owners decide.
    """
    check_first_owner(name=name, email=email)
    if await identities.count_people(tenant):
        raise Conflict("This tenant has people already. One of its owners can add another.")
    profile = _new_profile(tenant, clock, name=name, emails=[email], roles=[OWNERSHIP], kind=PERSON)
    await identities.add_profile(profile)
    return profile


def _new_profile(
    tenant: TenantId, clock: Clock, *, name: str, emails: Sequence[str], roles: Sequence[RoleAssignment], kind: str
) -> Profile:
    now = clock.now()
    return Profile(
        id=ProfileId(new_id("prf", now)),
        tenant=tenant,
        name=name.strip(),
        kind=kind,
        emails=tuple(dict.fromkeys(map(addresses.fold, emails))),
        roles=tuple(dict.fromkeys(roles)),
        created_at=now,
    )


def _called(identity: Identity) -> str:
    return _few_words([f"{identity.subject} of {identity.issuer}"])


def _few_words(words: Iterable[str]) -> str:
    return ", ".join(words)[:_LONGEST_NOTICE]


def _there(profile: Profile | None) -> Profile:
    if profile is None:
        raise NotFound
    return profile


def _tidied(name: str | None) -> str | None:
    return None if name is None else name.strip()


def _folded(emails: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if emails is None else tuple(dict.fromkeys(map(addresses.fold, emails)))


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        raise Invalid(faults)


def _name_faults(name: str | None) -> Iterator[Fault]:
    if name is not None and not (1 <= len(name.strip()) <= _LONGEST_NAME and name.strip().isprintable()):
        message = f"must have 1 to {_LONGEST_NAME} characters, on one line"
        yield Fault(field="name", rule="text", message=message)


def _email_faults(emails: Sequence[str] | None) -> Iterator[Fault]:
    if emails is not None and len(emails) > _MOST_EMAILS:
        yield Fault(field="emails", rule="count", message=f"at most {_MOST_EMAILS} addresses")
        return
    for index, email in enumerate(emails or ()):
        if not addresses.is_address(email):
            yield Fault(field=f"emails[{index}]", rule="email", message="is not an email address")
        elif not addresses.is_unambiguous(email):
            message = "has a letter that could be taken for another address; write it in small letters"
            yield Fault(field=f"emails[{index}]", rule="ambiguous", message=message)


def _kind_faults(kind: str) -> Iterator[Fault]:
    if kind not in (PERSON, SERVICE):
        yield Fault(field="kind", rule="one_of", message=f"must be {PERSON} or {SERVICE}")


def _sender_faults(channel: str, account: str, sender: str) -> Iterator[Fault]:
    if not is_channel(channel):
        message = "must be a channel's name, like line: a to z, 0 to 9, - and _"
        yield Fault(field="channel", rule="name", message=message)
    if not is_account(account):
        message = "must be an account of the channel: letters, digits and . _ @ -, at most 128"
        yield Fault(field="account", rule="name", message=message)
    if not is_peer(sender):
        message = f"must have 1 to {LONGEST_PEER} characters, on one line, as the channel gives it"
        yield Fault(field="sender", rule="text", message=message)


def _identity_faults(field: str, value: str) -> Iterator[Fault]:
    if not (value.strip() and len(value) <= _LONGEST_ID and value.isprintable()):
        yield Fault(field=field, rule="text", message=f"must have 1 to {_LONGEST_ID} characters, on one line")
    elif field == "issuer" and value.startswith(CHANNEL_ISSUERS):
        message = "is how senders of a channel are kept; name the 'channel', the 'account' and the 'sender'"
        yield Fault(field=field, rule="reserved", message=message)
    elif field == "issuer" and is_reserved(value):
        yield Fault(field=field, rule="reserved", message=f"{value} is the gateway itself; name an issuer of sign-ins")
