"""Turns settings and what identity made of them into the door that browsers sign in at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

import httpx2

from gateway.errors import ConfigurationFaults, Fault
from gateway.identity.login import CookieVerifier
from gateway.identity.providers import SignInIssuer
from gateway.identity.sign_ins import BrowserSignIns
from gateway.pipeline import Pipeline
from gateway.ports import Clock
from gateway.settings import Login, LoginIssuer
from gateway.tools.registry import AnyOperation
from gateway.web.sign_in.client import Client
from gateway.web.sign_in.flow import SignInFlow
from gateway.web.sign_in.flows import Flows
from gateway.web.sign_in.pages import Choice
from gateway.web.sign_in.routes import Door

_LONGEST_SECRET = 4_096


def build_door(
    login: Login,
    issuers: Mapping[str, SignInIssuer],
    verifier: CookieVerifier,
    sign_ins: BrowserSignIns,
    pipeline: Pipeline,
    who_am_i: AnyOperation,
    http: httpx2.AsyncClient,
    clock: Clock,
    environ: Mapping[str, str],
) -> Door:
    """The door. Raises ConfigurationFaults for each client secret that is not where the settings say."""
    secrets, faults = _secrets(login, environ)
    if faults:
        raise ConfigurationFaults(faults)
    flows = Flows(clock)
    public_url = login.public_url or ""
    choices = {}
    for one in login.issuers:
        client = Client(
            one.name,
            issuers[one.name],
            http,
            client_id=one.client_id,
            client_secret=secrets.get(one.name),
            scopes=one.scopes,
            public_url=public_url,
        )
        choices[one.name] = (Choice(one.name, one.title or one.name), SignInFlow(client, flows, clock))
    return Door(
        choices,
        verifier,
        sign_ins,
        pipeline,
        who_am_i,
        public_url=public_url,
        cookie_lives_s=int(timedelta(hours=login.absolute_hours).total_seconds()),
    )


def _secrets(login: Login, environ: Mapping[str, str]) -> tuple[dict[str, str], list[Fault]]:
    """The secrets by the issuer's name, and what is wrong; a public client has none."""
    secrets, faults = {}, []
    for index, one in enumerate(login.issuers):
        where = f"login.issuers[{index}]"
        for secret in _given(one, where, environ):
            if isinstance(secret, Fault):
                faults.append(secret)
            else:
                secrets[one.name] = secret
    return secrets, faults


def _given(one: LoginIssuer, where: str, environ: Mapping[str, str]) -> Iterator[str | Fault]:
    if one.client_secret_env is not None:
        field, found = f"{where}.client_secret_env", environ.get(one.client_secret_env, "").strip()
        missing = f"the variable {one.client_secret_env} is not set; the client's secret belongs in it"
    elif one.client_secret_file is not None:
        field, missing = f"{where}.client_secret_file", f"{one.client_secret_file} holds no secret"
        try:
            found = one.client_secret_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            found, missing = "", f"{one.client_secret_file} can't be read: {type(error).__name__}"
    else:
        return
    if not found:
        yield Fault(field=field, rule="secret", message=missing)
    elif len(found) > _LONGEST_SECRET or not found.isascii() or not found.isprintable():
        yield Fault(field=field, rule="secret", message="must be one line of ASCII text, and nothing else")
    else:
        yield found
