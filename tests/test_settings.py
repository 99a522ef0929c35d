"""Turns files and variables into settings and checks that every fault comes back by its name (issue 2, "Start")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from gateway.environment import Environment
from gateway.errors import ConfigurationFaults
from gateway.settings import NonEmpty, Settings, is_loopback, load, refuse_public_demo

ISSUER = {
    "issuer": "https://login.example.test",
    "audience": "gateway",
    "algorithms": ["RS256"],
    "tenant": "acme",
}


def written(folder: Path, text: str) -> Path:
    path = folder / "gateway.toml"
    path.write_text(text, encoding="utf-8")
    return path


def faults_of(config: Path | None, environ: dict[str, str]) -> dict[str, str]:
    with pytest.raises(ConfigurationFaults) as caught:
        load(config, environ)
    return {fault.field: fault.rule for fault in caught.value.faults}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads a `gateway.toml` that happens to lie in the current folder."""
    monkeypatch.chdir(tmp_path)


def test_a_variable_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    """Ours: three sources in one order."""
    config = written(tmp_path, '[server]\nport = 9000\nbody_limit_bytes = 2048\n[audit]\nreads = "durable"\n')

    settings = load(config, {"GATEWAY_SERVER__PORT": "9001", "PATH": "/usr/bin"})

    assert settings.server.port == 9001
    assert settings.server.body_limit_bytes == 2048
    assert settings.server.host == "127.0.0.1"
    assert settings.audit.reads == "durable"


def test_the_defaults_are_those_of_the_issue() -> None:
    """Issue 2 and design section 12: loopback, 8080, no demo, no issuer, 50 ms, 5 s."""
    settings = load(None, {})

    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8080)
    assert settings.demo.enabled is False
    assert settings.oidc.issuers == ()
    assert (settings.audit.reads, settings.audit.flush_ms, settings.policy.refuse_after_s) == ("buffered", 50, 5)
    assert (settings.state.folder, settings.server.metrics) == (Path(".gateway"), "loopback")


def test_the_file_is_the_argument_else_the_variable_else_the_usual_name(tmp_path: Path) -> None:
    """Ours: `--config`, GATEWAY_CONFIG, `gateway.toml` in the current folder."""
    assert load(None, {}).server.port == 8080

    written(tmp_path, "[server]\nport = 1111\n")
    other = tmp_path / "other.toml"
    other.write_text("[server]\nport = 2222\n", encoding="utf-8")
    third = tmp_path / "third.toml"
    third.write_text("[server]\nport = 3333\n", encoding="utf-8")

    assert load(None, {}).server.port == 1111
    assert load(None, {"GATEWAY_CONFIG": str(other)}).server.port == 2222
    assert load(third, {"GATEWAY_CONFIG": str(other)}).server.port == 3333


def test_every_fault_is_reported_at_once_under_its_full_name(tmp_path: Path) -> None:
    """Issue 2: "every fault in them reported at once with its name, and no start"."""
    config = written(
        tmp_path,
        """
        speed = 3
        [server]
        prot = 1
        metrics = "everybody"
        [[oidc.issuers]]
        issuer = "https://login.example.test"
        audience = ""
        algorithms = ["HS256"]
        [[oidc.issuers]]
        issuer = "https://login.example.test"
        algorithms = []
        tenant = "a"
        tenant_claim = "org"
        """,
    )

    faults = faults_of(
        config, {"GATEWAY_SERVER__PORT": "many", "GATEWAY_SEVER__PORT": "1", "GATEWAY_AUDIT__FLUSH_MS": "51"}
    )

    assert faults == {
        "GATEWAY_SEVER__PORT": "unknown_variable",
        "speed": "extra_forbidden",
        "server.prot": "extra_forbidden",
        "server.metrics": "literal_error",
        "GATEWAY_SERVER__PORT": "int_parsing",
        "GATEWAY_AUDIT__FLUSH_MS": "less_than_equal",
        "oidc.issuers[0].audience": "string_too_short",
        "oidc.issuers[0].algorithms[0]": "literal_error",
        "oidc.issuers[0].tenant_claim": "value_error",
        "oidc.issuers[1].issuer": "unique",
        "oidc.issuers[1].audience": "missing",
        "oidc.issuers[1].algorithms": "too_short",
        "oidc.issuers[1].tenant_claim": "value_error",
    }


@pytest.mark.parametrize(
    "variable",
    [
        "GATEWAY_",
        "GATEWAY_SERVER",
        "GATEWAY_SERVER__",
        "GATEWAY_SERVER__PORT__X",
        "GATEWAY_server__port",
        "GATEWAY_NOAUTH",
    ],
)
def test_a_variable_that_names_no_setting_refuses_the_start(variable: str) -> None:
    """Ours: a typo must not leave a default in force; those that other parts read are let through."""
    assert faults_of(None, {variable: "1"}) == {variable: "unknown_variable"}

    load(None, {"GATEWAY_TOKEN": "gwp_x", "GATEWAY_LONG": "1", "GATEWAY_CONFIG": ""})


def test_issuers_in_a_variable_are_json_and_their_faults_carry_its_name() -> None:
    """Ours: the same list, the same rules, the other source."""
    name = "GATEWAY_OIDC__ISSUERS"

    good = load(None, {name: json.dumps([ISSUER])})

    assert good.oidc.issuers[0].audience == "gateway"
    assert faults_of(None, {name: "[{"}) == {name: "json"}
    assert faults_of(None, {name: json.dumps([ISSUER | {"audience": ""}, ISSUER])}) == {
        f"{name}[0].audience": "string_too_short",
        f"{name}[1].issuer": "unique",
    }


@pytest.mark.parametrize("missing", ["issuer", "audience", "algorithms"])
def test_an_issuer_has_no_default_for_what_makes_a_token_good(missing: str) -> None:
    """Design section 5.1: audience required, allowed algorithms, an empty one refuses to start."""
    entry = {key: value for key, value in ISSUER.items() if key != missing}

    assert faults_of(None, {"GATEWAY_OIDC__ISSUERS": json.dumps([entry])}) == {
        f"GATEWAY_OIDC__ISSUERS[0].{missing}": "missing"
    }


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://login.example.test/realms/a", True),
        ("http://127.0.0.1:9000", True),
        ("http://localhost:9000/x", True),
        ("http://[::1]:9000", True),
        ("http://login.example.test", False),
        ("http://127.0.0.1.example.test", False),
        ("https://user:word@login.example.test", False),
        ("https://login.example.test#x", False),
        ("https://login.example.test:port", False),
        ("https://[login", False),
        (" https://login.example.test", False),
        ("login.example.test", False),
        ("ftp://127.0.0.1", False),
    ],
)
def test_keys_are_fetched_over_https_or_on_this_machine(url: str, good: bool) -> None:
    """OIDC Discovery section 3: an issuer is an https URL; http only where no network lies between."""
    for field in ("issuer", "jwks_uri"):
        environ = {"GATEWAY_OIDC__ISSUERS": json.dumps([ISSUER | {field: url}])}
        if good:
            assert getattr(load(None, environ).oidc.issuers[0], field) == url
        else:
            assert faults_of(None, environ) == {f"GATEWAY_OIDC__ISSUERS[0].{field}": "value_error"}


def test_the_tenant_comes_from_the_issuer_or_from_a_claim_and_not_from_both() -> None:
    """Design section 5: the tenant comes from the issuer's settings or a named claim."""
    by_claim = {key: value for key, value in ISSUER.items() if key != "tenant"} | {"tenant_claim": "org"}

    assert load(None, {"GATEWAY_OIDC__ISSUERS": json.dumps([by_claim])}).oidc.issuers[0].tenant_claim == "org"
    assert faults_of(None, {"GATEWAY_OIDC__ISSUERS": json.dumps([by_claim | {"tenant": ""}])}) == {
        "GATEWAY_OIDC__ISSUERS[0].tenant": "string_too_short"
    }


@pytest.mark.parametrize("content", [b"[server\n", b"\xff = 1\n", None])
def test_a_file_that_cant_be_read_is_a_fault_with_its_path(tmp_path: Path, content: bytes | None) -> None:
    """Ours: a file that was named must be there and be TOML; other faults are still told."""
    config = tmp_path / "named.toml"
    if content is not None:
        config.write_bytes(content)

    faults = faults_of(config, {"GATEWAY_SERVER__PORT": "70000"})

    assert faults == {str(config): "config_file", "GATEWAY_SERVER__PORT": "less_than_equal"}


def test_a_table_that_is_none_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    """Ours: the check for repeated issuers walks the file before anything has looked at its shape."""
    shapes = {
        "oidc = 3\nserver = 1\n": {"oidc": "model_type", "server": "model_type"},
        "[oidc]\nissuers = 3\n": {"oidc.issuers": "tuple_type"},
        '[oidc]\nissuers = ["x"]\n': {"oidc.issuers[0]": "model_type"},
    }
    for text, expected in shapes.items():
        assert faults_of(written(tmp_path, text), {}) == expected


def test_the_demo_tenant_is_served_on_loopback_alone() -> None:
    """Design section 5: the demo tenant refuses to start on an address that is not loopback."""
    public = {"GATEWAY_SERVER__HOST": "0.0.0.0"}

    settings = load(None, public)
    refuse_public_demo(settings, has_demo_tenant=False)
    refuse_public_demo(load(None, {"GATEWAY_DEMO__ENABLED": "true"}), has_demo_tenant=True)

    with pytest.raises(ConfigurationFaults) as caught:
        refuse_public_demo(settings, has_demo_tenant=True)
    assert [fault.field for fault in caught.value.faults] == ["server.host"]
    assert faults_of(None, public | {"GATEWAY_DEMO__ENABLED": "true"}) == {"server.host": "loopback_for_demo"}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("::ffff:10.0.0.1", False),
        ("192.168.1.4", False),
        ("localhost.example.test", False),
        ("", False),
    ],
)
def test_loopback_is_told_from_the_address(host: str, expected: bool) -> None:
    """Ours: an address that is not plainly of this machine counts as public."""
    assert is_loopback(host) is expected


def test_settings_are_frozen_at_every_depth() -> None:
    """Style 6: nothing changes a setting after the start."""
    settings = load(None, {})

    with pytest.raises(ValidationError):
        settings.server.port = 1
    with pytest.raises(ValidationError):
        settings.log = settings.log


def test_nothing_turns_authentication_off_and_secrets_are_kept_as_secrets() -> None:
    """Design section 5: there is no switch that turns authentication off. Style 6: secrets are SecretStr."""
    for name, annotation in every_setting(Settings):
        words = set(name.replace(".", "_").split("_"))
        assert not words & {"auth", "authentication", "anonymous", "insecure", "skip", "disable", "disabled", "verify"}
        if name.endswith(("_file", "_env")):  # where a secret is kept, not the secret
            assert annotation in (Path | None, NonEmpty | None), name
        elif words & {"secret", "password", "token", "key"}:
            assert annotation is SecretStr, name


def every_setting(model: type[BaseModel], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        inner = inner if isinstance(inner, type) else next(iter(getattr(inner, "__args__", ())), None)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += every_setting(inner, f"{above}{name}.")
        else:
            found.append((f"{above}{name}", field.annotation))
    return found


def test_the_process_environment_is_not_read_behind_our_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: `load` reads what it is given, so that a test or a second gateway in one process is not surprised."""
    monkeypatch.setenv("SERVER", '{"port": 1}')
    monkeypatch.setenv("GATEWAY_SERVER__PORT", "1")

    assert load(None, {}).server.port == 8080


def test_variables_are_a_source_like_any_other() -> None:
    """pydantic-settings: a source tells the value of one field when it is asked for it."""
    source = Environment(Settings, {"GATEWAY_LOG__LEVEL": "debug"})

    assert source.get_field_value(Settings.model_fields["log"], "log") == ({"level": "debug"}, "log", False)
    assert source.get_field_value(Settings.model_fields["server"], "server") == (None, "server", False)


LOGIN_ISSUER = {
    "name": "work",
    "issuer": "https://login.example.test",
    "client_id": "gateway",
    "algorithms": ["RS256"],
    "tenant": "acme",
}


def login_of(public_url: str | None = "https://gateway.test", **changed: Any) -> dict[str, str]:
    """The variables of a gateway with one issuer to sign in at; a field that is None is left out."""
    fields = {name: value for name, value in (LOGIN_ISSUER | changed).items() if value is not None}
    variables = {"GATEWAY_LOGIN__ISSUERS": json.dumps([fields])}
    return variables if public_url is None else variables | {"GATEWAY_LOGIN__PUBLIC_URL": public_url}


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://gateway.test", "https://gateway.test"),
        ("https://gateway.test/", "https://gateway.test"),
        ("https://gateway.test:8443", "https://gateway.test:8443"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_browsers_see_the_gateway_at_one_origin(given: str, origin: str) -> None:
    """Ours: what `Origin` is compared with byte for byte; cookies need https, or this machine."""
    assert load(None, login_of(given)).login.public_url == origin
    assert load(None, {}).login.public_url is None


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "gateway.test",
        "http://gateway.test",
        "https://gateway.test/path",
        "https://gateway.test?x",
        "https://gateway.test#x",
        "https://user@gateway.test",
        "https://Gateway.test",
        "HTTPS://gateway.test",
        "https://gateway.test:443",
        "https://gateway.test:x",
        "https://caf\xe9.test",
        "https://",
        " https://gateway.test",
    ],
)
def test_where_browsers_see_it_has_one_spelling_and_must_be_said(given: str | None) -> None:
    """Ours: an address that a browser writes otherwise would refuse every write, and one without https every cookie."""
    field = "login.public_url" if given is None else "GATEWAY_LOGIN__PUBLIC_URL"
    assert faults_of(None, login_of(given)) == {field: "value_error"}


@pytest.mark.parametrize(
    ("changed", "field", "rule"),
    [
        ({"name": "Work"}, "name", "string_pattern_mismatch"),
        ({"name": "a/b"}, "name", "string_pattern_mismatch"),
        ({"name": "work\n"}, "name", "string_pattern_mismatch"),
        ({"name": None}, "name", "missing"),
        ({"issuer": "http://login.example.test"}, "issuer", "value_error"),
        ({"client_id": ""}, "client_id", "string_too_short"),
        ({"algorithms": []}, "algorithms", "too_short"),
        ({"algorithms": ["HS256"]}, "algorithms[0]", "literal_error"),
        ({"scopes": ["email"]}, "scopes", "value_error"),
        ({"client_secret_file": "f", "client_secret_env": "E"}, "client_secret_env", "value_error"),
        ({"client_secret_env": "GATEWAY_SECRET"}, "client_secret_env", "value_error"),
        ({"client_secret": "s3cret"}, "client_secret", "extra_forbidden"),
        ({"tenant_claim": "org"}, "tenant_claim", "value_error"),
        ({"tenant": None}, "tenant_claim", "value_error"),
    ],
)
def test_an_issuer_to_sign_in_at_is_said_whole(changed: dict[str, Any], field: str, rule: str) -> None:
    """Style 6: what has no default must be said, and a secret is not in the settings."""
    assert faults_of(None, login_of(**changed)) == {f"GATEWAY_LOGIN__ISSUERS[0].{field}": rule}


def test_each_issuer_to_sign_in_at_is_there_once_under_one_name(tmp_path: Path) -> None:
    """Two with one name would share their addresses, and two of one issuer their people."""
    entries = [LOGIN_ISSUER, LOGIN_ISSUER | {"issuer": "https://other.test"}, LOGIN_ISSUER | {"name": "other"}]
    variables = login_of() | {"GATEWAY_LOGIN__ISSUERS": json.dumps(entries)}

    assert faults_of(None, variables) == {
        "GATEWAY_LOGIN__ISSUERS[1].name": "unique",
        "GATEWAY_LOGIN__ISSUERS[2].issuer": "unique",
    }


ASSERTION = {"header": "X-Assertion", "jwks_uri": "https://proxy.test/keys", **ISSUER}


@pytest.mark.parametrize(
    ("table", "other", "changed", "wrong"),
    [
        ("GATEWAY_OIDC__ISSUERS", ISSUER, {}, []),
        ("GATEWAY_OIDC__ISSUERS", ISSUER, {"issuer": "https://other.test", "provision": True}, []),
        ("GATEWAY_OIDC__ISSUERS", ISSUER, {"provision": True}, ["provision"]),
        ("GATEWAY_OIDC__ISSUERS", ISSUER, {"trust_email": True}, ["trust_email"]),
        ("GATEWAY_OIDC__ISSUERS", ISSUER, {"tenant": "globex"}, ["tenant"]),
        ("GATEWAY_OIDC__ISSUERS", ISSUER, {"tenant": None, "tenant_claim": "org"}, ["tenant", "tenant_claim"]),
        ("GATEWAY_PROXIES__ASSERTIONS", ASSERTION, {"provision": True, "trust_email": True}, ["provision"]),
    ],
)
def test_one_issuer_has_one_kind_of_people(
    table: str, other: dict[str, Any], changed: dict[str, Any], wrong: list[str]
) -> None:
    """Whoever is let in by one entry is somebody for the other too, so both have to say the same."""
    variables = login_of(**changed) | {table: json.dumps([other])}

    if wrong:
        assert faults_of(None, variables) == {f"GATEWAY_LOGIN__ISSUERS[0].{key}": "agrees" for key in wrong}
    else:
        assert load(None, variables).login.issuers[0].name == "work"


@pytest.mark.parametrize(
    ("changed", "client", "refused"),
    [
        ({"accept_plain_typ": True, "audience": "c"}, "c", True),
        ({"accept_plain_typ": True, "audience": "api"}, "c", False),
        ({"accept_plain_typ": False, "audience": "c"}, "c", False),
        ({"accept_plain_typ": True, "audience": "c", "issuer": "https://other.test"}, "c", False),
    ],
)
def test_no_id_token_passes_for_an_access_token(changed: dict[str, Any], client: str, refused: bool) -> None:
    """Design section 5: ID tokens are refused. Without a `typ` the audience is all that tells the two apart."""
    variables = login_of(client_id=client) | {"GATEWAY_OIDC__ISSUERS": json.dumps([ISSUER | changed])}

    if refused:
        assert faults_of(None, variables) == {"GATEWAY_OIDC__ISSUERS[0].audience": "audience_of_its_own"}
    else:
        assert load(None, variables).oidc.issuers[0].audience == changed["audience"]


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("postgresql://gateway:hunter2@db.example:5432/acme", True),
        ("postgres://gateway@db.example/acme?sslmode=verify-full", True),
        ("postgresql://gateway:hunter2@db.example", False),
        ("mysql://gateway:hunter2@db.example/acme", False),
        ("postgresql+asyncpg://gateway:hunter2@db.example/acme", False),
        ("sqlite:///hunter2.db", False),
        ("hunter2", False),
    ],
)
def test_the_database_is_a_postgresql_and_its_address_is_shown_to_nobody(tmp_path: Path, url: str, good: bool) -> None:
    """It may hold a password: neither the settings nor a fault in them show it."""
    config = tmp_path / "gateway.toml"
    config.write_text(f'[database]\nurl = "{url}"\n', encoding="utf-8")
    if good:
        settings = load(config, {})
        assert settings.database.url is not None
        assert settings.database.url.get_secret_value() == url
        shown = f"{settings!r} {settings} {settings.model_dump_json()}"
    else:
        with pytest.raises(ConfigurationFaults) as refusal:
            load(config, {})
        assert [fault.field for fault in refusal.value.faults] == ["database.url"]
        shown = str(refusal.value) + repr(refusal.value)
        assert "postgresql://" in shown
    assert "hunter2" not in shown
