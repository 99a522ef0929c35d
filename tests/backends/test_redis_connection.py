"""Every way to Redis that the settings can say leads there, waits for a bounded time and shows no password."""

from __future__ import annotations

import asyncio
import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import ValidationError
from redis import Redis as BlockingRedis

from gateway.backends.local.clock import SystemClock
from gateway.backends.redis.connection import RedisConnection
from gateway.backends.redis.replicas import Replicas
from gateway.errors import ConfigurationFaults, Unavailable
from gateway.keys import redis_key
from gateway.model import TenantId
from gateway.settings.redis import Redis
from tests.backends.stores import ACME, GLOBEX
from tests.redis_servers import free_port, own_redis

BOUND_S = 10.0
PASSWORD = "correct horse battery staple"


def _connected(password: str | None = None, **settings: object) -> RedisConnection:
    variable = {} if password is None else {"password_env": "REDIS_PASSWORD"}
    replicas = Replicas.of(
        Redis.model_validate({"timeout_s": 1.0, **variable, **settings}),
        {} if password is None else {"REDIS_PASSWORD": password},
        SystemClock(),
    )
    assert replicas is not None
    return replicas.connection


async def _works(connection: RedisConnection) -> bool:
    """Whether it asks, runs a script on a tenant's key, and hears what is published."""
    key = redis_key("test", ACME, "counter")
    try:
        async with connection.listening("test:heard") as pubsub:
            counted = await connection.script("return redis.call('INCR', KEYS[1])", (key,))
            await connection.script("return redis.call('PUBLISH', ARGV[1], ARGV[2])", (key,), "test:heard", "word")
            async with asyncio.timeout(BOUND_S):
                while (message := await pubsub.get_message(timeout=1)) is None or message["type"] != "message":
                    pass
            return bool(counted == 1 and message["data"] == b"word")
    finally:
        await connection.aclose()
        await connection.aclose()


async def test_a_user_with_a_password_and_the_least_rights(tmp_path: Path) -> None:
    """Redis ACL: a user that is allowed the keys and the channel of its prefix, and these commands."""
    with own_redis(tmp_path) as server:
        with BlockingRedis.from_url(server.url) as redis:
            rules = ["~test:*", "&test:*", "+eval", "+incr", "+get", "+set", "+publish", "+subscribe", "+ping", "+del"]
            redis.execute_command("ACL", "SETUSER", "gateway", "on", f">{PASSWORD}", "resetchannels", *rules)
        url = server.url.replace("//", "//gateway@")
        assert await _works(_connected(PASSWORD, url=url))

        refused = _connected("wrong " + PASSWORD, url=url)
        with pytest.raises(Unavailable) as told:
            await refused.ask(lambda client: client.ping())
        await refused.aclose()
        for text in (str(told.value), repr(told.value), repr(refused), repr(vars(refused))):
            assert PASSWORD not in text
        assert (told.value.__cause__, told.value.__suppress_context__) == (None, True)


async def test_tls_with_an_authority_of_ones_own_and_with_nobody_elses(tmp_path: Path) -> None:
    """rediss://: a server whose certificate comes from elsewhere is not asked."""
    authority = _certificate(tmp_path)
    files = ["--tls-cert-file", str(authority), "--tls-key-file", str(tmp_path / "key.pem")]
    files += ["--tls-ca-cert-file", str(authority), "--tls-auth-clients", "no"]
    port = free_port()
    with own_redis(tmp_path, "--tls-port", str(port), *files):
        url = f"rediss://127.0.0.1:{port}"
        assert await _works(_connected(url=url, ca_file=authority))
        stranger = _connected(url=url)
        with pytest.raises(Unavailable):
            await stranger.ask(lambda client: client.ping())
        await stranger.aclose()


async def test_sentinel_names_the_server(tmp_path: Path) -> None:
    """redis.mode = "sentinel": a Sentinel that is away is passed over."""
    with own_redis(tmp_path) as server:
        config = tmp_path / "sentinel.conf"
        config.write_text(f"sentinel monitor flights 127.0.0.1 {server.port} 1\n")
        with own_redis(tmp_path, str(config), "--sentinel") as sentinel:
            away = "redis://127.0.0.1:1"
            more = [f"127.0.0.1:{sentinel.port}"]
            assert await _works(_connected(url=away, mode="sentinel", sentinel_master="flights", more=more))
            unknown = _connected(url=sentinel.url, mode="sentinel", sentinel_master="hotels")
            with pytest.raises(Unavailable):
                await unknown.ask(lambda client: client.ping())
            await unknown.aclose()


async def test_a_cluster(tmp_path: Path) -> None:
    """redis.mode = "cluster": a tenant's keys lie in one slot."""
    with own_redis(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port())) as server:
        with BlockingRedis.from_url(server.url) as redis:
            redis.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            async with asyncio.timeout(BOUND_S):
                while redis.cluster("INFO")["cluster_state"] != "ok":  # noqa: ASYNC110 - a server's state sets no event
                    await asyncio.sleep(0.01)
            one, other = redis_key("p", ACME, "epoch"), redis_key("p", ACME, "lock", "a")
            assert redis.execute_command("CLUSTER", "KEYSLOT", one) == redis.execute_command(
                "CLUSTER", "KEYSLOT", other
            )
        assert await _works(_connected(url=server.url, mode="cluster"))


async def test_a_frozen_server_is_waited_for_no_longer_than_said(tmp_path: Path) -> None:
    """Bounded timeouts; and it answers again on the same client."""
    with own_redis(tmp_path) as server:
        connection = _connected(url=server.url, timeout_s=0.2)
        await connection.ask(lambda client: client.ping())
        server.freeze()
        async with asyncio.timeout(BOUND_S):
            with pytest.raises(Unavailable):
                await connection.ask(lambda client: client.ping())
        server.thaw()
        assert await connection.ask(lambda client: client.ping())
        await connection.aclose()


async def test_a_pool_that_is_used_up_is_waited_for_no_longer_than_said(tmp_path: Path) -> None:
    """A bounded pool: more callers than connections wait, and then they are told."""
    with own_redis(tmp_path) as server:
        connection = _connected(url=server.url, connections=2, timeout_s=0.3)
        waiting = [connection.ask(lambda client: client.blpop(["nothing"], timeout=5)) for _ in range(3)]
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in told] == [Unavailable] * 3
        await connection.aclose()


@pytest.mark.parametrize(
    "settings",
    [
        {"url": f"redis://gateway:{PASSWORD.replace(' ', '')}@cache:6379/0"},
        {"url": "http://cache:6379"},
        {"url": "redis://cache:6379/zero"},
        {"url": "redis://cache:99999"},
        {"url": "redis://"},
        {"url": "redis://cache?password=x"},
        {"url": "redis://cache", "more": ["cache"]},
        {"url": "redis://cache", "more": ["user@cache:1"]},
        {"url": "redis://cache", "prefix": "a{b}"},
        {"url": "redis://cache", "timeout_s": 30},
        {"url": "redis://cache", "password_file": "one", "password_env": "OTHER"},
        {"url": "redis://cache", "password_env": "GATEWAY_REDIS__PASSWORD"},
    ],
)
def test_settings_that_lead_nowhere_or_show_a_password_are_refused(settings: dict[str, object]) -> None:
    """Bad settings are named before anything is opened, without what they hold."""
    with pytest.raises(ValidationError) as told:
        Redis.model_validate(settings)
    shown = str(told.value.errors(include_input=False, include_url=False, include_context=False))
    assert PASSWORD.replace(" ", "") not in shown


def test_a_password_that_is_not_where_the_settings_say_is_told_at_the_start(tmp_path: Path) -> None:
    """As for the secrets of clients: and it shows no part of one."""
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\nand more")
    for settings in ({"password_file": file}, {"password_file": tmp_path / "none"}, {"password_env": "MISSING"}):
        with pytest.raises(ConfigurationFaults) as told:
            Replicas.of(Redis.model_validate({"url": "redis://cache", **settings}), {}, SystemClock())
        assert PASSWORD not in str(told.value)
    broken = tmp_path / "ca.pem"
    broken.write_text("none")
    with pytest.raises(ConfigurationFaults):
        Replicas.of(Redis(url="rediss://cache", ca_file=broken), {}, SystemClock())


def test_no_two_tenants_and_no_two_purposes_share_a_key() -> None:
    """Design section 11: every key carries its tenant, length-prefixed."""
    parts = [("lock", "a", "b"), ("lock", "ab"), ("lock", "a1:b"), ("locka", "b"), ("epoch",)]
    tenants = (ACME, GLOBEX, TenantId("acm"))
    keys = {redis_key("p", tenant, *one) for tenant in tenants for one in parts}
    assert len(keys) == len(tenants) * len(parts)


def _certificate(folder: Path) -> Path:
    """A certificate for this machine that is its own authority, with its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(private)
    path = folder / "cert.pem"
    path.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    return path
