"""Turns the settings of connectors into the accounts that they act for, with the secrets that the settings name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gateway.errors import ConfigurationFaults, Fault
from gateway.identity.channel_accounts import ChannelAccount, ChannelAccounts, Delivery
from gateway.identity.webhooks import LINE
from gateway.keys import is_account, is_channel, is_profile_id
from gateway.model import AgentName, ProfileId, TenantId
from gateway.settings import ConnectorAccount, Settings

_WHERE = "connectors.accounts"
_SHORTEST_SECRET = 16


class _Faults(list[Fault]):
    """What is wrong with the accounts, collected."""

    def note(self, index: int, field: str, rule: str, message: str) -> None:
        """One fault."""
        self.append(Fault(field=f"{_WHERE}[{index}].{field}", rule=rule, message=message))


def channels_in(settings: Settings, environ: Mapping[str, str] | None) -> ChannelAccounts:
    """The accounts. Without `environ` no secret is read: only what answers a channel needs one.

    Raises ConfigurationFaults with everything that can't be used.
    """
    entries, faults = settings.connectors.accounts, _Faults()
    for index, entry in enumerate(entries):
        _check(index, entry, entries[:index], faults)
    made = [_account(index, entry, environ, faults) for index, entry in enumerate(entries)]
    if faults:
        raise ConfigurationFaults(faults)
    return ChannelAccounts(made)


def _check(index: int, entry: ConnectorAccount, earlier: Sequence[ConnectorAccount], faults: _Faults) -> None:
    if not is_channel(entry.channel):
        message = (
            "must be a name of a to z, 0 to 9, - and _, and none of direct, explicit, dashboard, web, subagent, cron"
        )
        faults.note(index, "channel", "name", message)
    if not is_account(entry.account):
        faults.note(index, "account", "name", "must hold letters, digits and . _ @ - alone, at most 128")
    if any((one.channel, one.account) == (entry.channel, entry.account) for one in earlier):
        faults.note(index, "account", "unique", "an earlier entry has this account; name each one once")
    if not is_profile_id(entry.service):
        faults.note(index, "service", "profile", "must be the id of a service: gateway people add NAME --service")
    for field in _without_line(entry):
        faults.note(index, field, "line_only", "is for LINE; a connector of your own verifies its channel itself")
    if entry.deliver_to is None and (entry.deliver_secret_file or entry.deliver_secret_env):
        faults.note(index, "deliver_to", "missing", "must be said, where deliveries are to be signed")


def _without_line(entry: ConnectorAccount) -> Iterator[str]:
    if entry.channel != LINE:
        line = ("secret_file", "secret_env", "destination", "deliver_to")
        yield from (field for field in line if getattr(entry, field) is not None)


def _account(index: int, entry: ConnectorAccount, environ: Mapping[str, str] | None, faults: _Faults) -> ChannelAccount:
    signed = entry.channel == LINE and environ is not None
    secret = _secret(index, entry, "secret", environ or {}, faults) if signed else None
    delivery = None
    if entry.deliver_to is not None and signed:
        shared = _secret(index, entry, "deliver_secret", environ or {}, faults)
        delivery = Delivery(url=entry.deliver_to, secret=shared or b"")
    return ChannelAccount(
        channel=entry.channel,
        account=entry.account,
        tenant=TenantId(entry.tenant),
        agent=AgentName(entry.agent),
        service=ProfileId(entry.service),
        secret=secret,
        destination=entry.destination,
        delivery=delivery,
    )


def _secret(
    index: int, entry: ConnectorAccount, name: str, environ: Mapping[str, str], faults: _Faults
) -> bytes | None:
    """The secret that the settings name a place of, without space around it; None with a fault where there is none."""
    file: Path | None = getattr(entry, f"{name}_file")
    variable: str | None = getattr(entry, f"{name}_env")
    if (file is None) == (variable is None):
        faults.note(index, f"{name}_file", "one_source", f"name exactly one of {name}_file and {name}_env")
        return None
    if file is not None:
        field = f"{name}_file"
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            faults.note(index, field, "readable", f"{file} can't be read as text")
            return None
    else:
        field = f"{name}_env"
        text = environ.get(variable or "", "")
    if len(text.strip()) < _SHORTEST_SECRET:
        faults.note(index, field, "secret", f"must name a secret of {_SHORTEST_SECRET} characters or more")
        return None
    return text.strip().encode()
