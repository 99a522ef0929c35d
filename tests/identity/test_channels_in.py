"""Accounts on channels come from the settings, with secrets from where these say (design section 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.channels_in import channels_in
from gateway.errors import ConfigurationFaults
from gateway.settings import ConnectorAccount, Connectors, Settings, load
from tests.cast import ACME, GLOBEX, person, profile_id, requester

SECRET = "0123456789abcdef0123456789abcdef"
LINE: dict[str, Any] = {
    "channel": "line",
    "account": "support",
    "tenant": "acme",
    "agent": "flight",
    "service": profile_id("line"),
    "secret_env": "LINE_SECRET",
}
OWN = {name: value for name, value in LINE.items() if name != "secret_env"} | {"channel": "viber"}


def _settings(settings: Settings, *entries: dict[str, Any]) -> Settings:
    accounts = tuple(ConnectorAccount(**entry) for entry in entries)
    return settings.model_copy(update={"connectors": Connectors(accounts=accounts)})


def test_a_secret_comes_from_a_file_or_a_variable_and_is_shown_nowhere(settings: Settings, tmp_path: Path) -> None:
    """Without the line's end of a file; the command line, which no channel calls, reads none."""
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n", encoding="utf-8")
    by_file = {**LINE, "account": "sales", "secret_env": None, "secret_file": file}
    delivers = {**LINE, "account": "lost", "deliver_to": "https://runtime.test/line", "deliver_secret_file": file}
    made = _settings(settings, LINE, by_file, delivers, OWN)

    accounts = channels_in(made, {"LINE_SECRET": SECRET})
    for name in ("support", "sales"):
        found = accounts.find("line", name)
        assert found is not None
        assert (found.secret, found.delivery, found.name) == (SECRET.encode(), None, f"line:{name}")
        assert SECRET not in repr(found)
    lost = accounts.find("line", "lost")
    assert lost is not None
    assert lost.delivery is not None
    assert (lost.delivery.url, lost.delivery.secret) == ("https://runtime.test/line", SECRET.encode())
    assert SECRET not in repr(lost)
    own = accounts.find("viber", "support")
    assert own is not None
    assert own.secret is None
    at_desk = channels_in(made, None).find("line", "support")
    assert at_desk is not None
    assert at_desk.secret is None


def test_an_account_is_its_services_and_its_tenants(settings: Settings) -> None:
    """Design section 5: "A connector can act only for its own channel and account"."""
    accounts = channels_in(_settings(settings, LINE, OWN), {"LINE_SECRET": SECRET})
    line = person("line", "connector", kind="service")

    assert accounts.of_connector(requester(line), "line", "support") is accounts.find("line", "support")
    for who, channel, account in (
        (person("line", "connector", kind="service", tenant=GLOBEX), "line", "support"),
        (person("other", "connector", kind="service"), "line", "support"),
        (person("line", "connector"), "line", "support"),
        (line, "line", "sales"),
        (line, "LINE", "support"),
    ):
        assert accounts.of_connector(requester(who), channel, account) is None
    assert line.tenant == ACME


@pytest.mark.parametrize(
    ("entry", "field", "rule"),
    [
        ({**OWN, "channel": "direct"}, "channel", "name"),
        ({**OWN, "channel": "a:b"}, "channel", "name"),
        ({**OWN, "account": "a:b"}, "account", "name"),
        ({**OWN, "service": "alice"}, "service", "profile"),
        ({**OWN, "secret_env": "LINE_SECRET"}, "secret_env", "line_only"),
        ({**OWN, "destination": "U1"}, "destination", "line_only"),
        ({**LINE, "secret_env": None}, "secret_file", "one_source"),
        ({**LINE, "secret_file": Path("/nowhere/at/all")}, "secret_file", "one_source"),
        ({**LINE, "secret_env": None, "secret_file": Path("/nowhere/at/all")}, "secret_file", "readable"),
        ({**LINE, "secret_env": "NOT_SET"}, "secret_env", "secret"),
        ({**LINE, "secret_env": "SHORT"}, "secret_env", "secret"),
        ({**LINE, "deliver_to": "https://runtime.test"}, "deliver_secret_file", "one_source"),
        ({**LINE, "deliver_secret_env": "LINE_SECRET"}, "deliver_to", "missing"),
    ],
)
def test_what_can_not_be_used_is_named_and_nothing_starts(
    settings: Settings, entry: dict[str, Any], field: str, rule: str
) -> None:
    """Design section 5: each kind is explicit in settings; an empty secret is none."""
    with pytest.raises(ConfigurationFaults) as refused:
        channels_in(_settings(settings, entry), {"LINE_SECRET": SECRET, "SHORT": " abc "})
    assert [(one.field, one.rule) for one in refused.value.faults] == [(f"connectors.accounts[0].{field}", rule)]


def test_two_entries_for_one_account_do_not_start(settings: Settings) -> None:
    """It would be open whose it is, also between organisations: a webhook names no tenant."""
    with pytest.raises(ConfigurationFaults) as refused:
        channels_in(_settings(settings, OWN, {**OWN, "tenant": "globex"}), {})
    assert [one.field for one in refused.value.faults] == ["connectors.accounts[1].account"]


def test_a_secrets_variable_is_no_setting_and_deliveries_travel_safely(tmp_path: Path) -> None:
    """Both are faults of the file, reported with the others."""
    config = tmp_path / "gateway.toml"
    config.write_text(
        '[[connectors.accounts]]\nchannel = "line"\naccount = "a"\ntenant = "acme"\nagent = "flight"\n'
        'service = "prf_x"\nsecret_env = "GATEWAY_SECRET"\ndeliver_to = "http://elsewhere.test"\n',
        encoding="utf-8",
    )
    with pytest.raises(ConfigurationFaults) as refused:
        load(config, {})
    assert {one.field for one in refused.value.faults} == {
        "connectors.accounts[0].secret_env",
        "connectors.accounts[0].deliver_to",
    }
