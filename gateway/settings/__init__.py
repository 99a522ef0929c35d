"""Settings: what can be set, table by table, and how a start reads it. Others import from here."""

from gateway.settings.loading import Settings, load, refuse_public_demo
from gateway.settings.people import ConnectorAccount, Connectors, Login, LoginIssuer
from gateway.settings.redis import Redis
from gateway.settings.serving import Audit, DatabaseServer, Demo, Log, Policy, Server, State
from gateway.settings.tables import NonEmpty, is_loopback
from gateway.settings.tokens import (
    Introspection,
    IntrospectionServer,
    Issuer,
    Oidc,
    Proxies,
    ProxyAssertion,
    ProxyHeader,
)

__all__ = [
    "Audit",
    "ConnectorAccount",
    "Connectors",
    "DatabaseServer",
    "Demo",
    "Introspection",
    "IntrospectionServer",
    "Issuer",
    "Log",
    "Login",
    "LoginIssuer",
    "NonEmpty",
    "Oidc",
    "Policy",
    "Proxies",
    "ProxyAssertion",
    "ProxyHeader",
    "Redis",
    "Server",
    "Settings",
    "State",
    "is_loopback",
    "load",
    "refuse_public_demo",
]
