"""Turns `server.mjs` into running identity providers that none of us wrote, and into the tokens that clients get."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import orjson
import pytest

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".provider"  # what npm installs, by the lock; not under version control
FILES = ("package.json", "package-lock.json", ".npmrc", "server.mjs")
PATIENCE_S = 120
OLDEST_NODE = 20
REDIRECT = "http://127.0.0.1:9/callback"  # nothing listens there: the answer is read from the redirect itself
AUDIENCE = "https://gateway.example"
OPAQUE_AUDIENCE = "https://opaque.gateway.example"
CONSOLE, PHONE, ROBOT, INTROSPECTOR = "console", "phone", "robot", "introspector"


@dataclass(frozen=True)
class Provider:
    """The running process, and its first issuer where none is named."""

    process: subprocess.Popen[bytes]
    issuers: tuple[str, ...]
    secret: str

    @property
    def url(self) -> str:
        """The first issuer's `iss`."""
        return self.issuers[0]

    def rotate(self) -> None:
        """New signing keys instead of all before."""
        self._command("rotate")

    def fetches(self) -> int:
        """How often the key set was asked for since the start."""
        return int(self._command("fetches")["fetches"])

    def _command(self, word: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word} {self.url}\n".encode())
        self.process.stdin.flush()
        return _line(self.process.stdout)

    def service_token(self, *, scope: str = "", resource: str = AUDIENCE, client: str = ROBOT) -> str:
        """What a service gets for itself (RFC 6749 section 4.4)."""
        asked = {"grant_type": "client_credentials", "resource": resource} | ({"scope": scope} if scope else {})
        with _client() as http:
            return str(self._tokens(http, asked, client)["access_token"])

    def person_tokens(
        self, name: str, *, scope: str = "openid", resource: str | None = AUDIENCE, client: str = CONSOLE
    ) -> dict[str, Any]:
        """What a client gets for a person who signs in and consents (RFC 6749 section 4.1, with RFC 7636)."""
        verifier = secrets.token_urlsafe(32)
        wanted = {} if resource is None else {"resource": resource}
        question = wanted | {
            "client_id": client,
            "response_type": "code",
            "redirect_uri": REDIRECT,
            "scope": scope,
            "state": "s",
            "nonce": "n",
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        with _client() as http:
            code = self._code(http, http.get(f"{self.url}/auth", params=question), name)
            answer = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT}
            return self._tokens(http, wanted | answer | {"code_verifier": verifier}, client)

    def _code(self, http: httpx2.Client, answer: httpx2.Response, name: str) -> str:
        """Follows the pages like a browser until they send it back to the client."""
        for _ in range(12):
            if answer.is_redirect:
                to = answer.headers["location"]
                if to.startswith(REDIRECT):
                    return parse_qs(urlsplit(to).query)["code"][0]
                answer = http.get(httpx2.URL(answer.url).join(to))
            else:
                prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
                action = re.search(r'action="([^"]+)"', answer.text)
                assert prompt, answer.text
                assert action, answer.text
                fields = {"prompt": prompt[1], "login": name, "password": "any"}
                answer = http.post(httpx2.URL(answer.url).join(action[1]), data=fields)
        raise AssertionError(f"no code after twelve pages, but {answer.status_code}: {answer.text}")

    def _tokens(self, http: httpx2.Client, form: dict[str, str], client: str) -> dict[str, Any]:
        public = client == PHONE
        answer = http.post(
            f"{self.url}/token",
            data=form | ({"client_id": client} if public else {}),
            auth=httpx2.Auth() if public else httpx2.BasicAuth(client, self.secret),
        )
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def _client() -> httpx2.Client:
    return httpx2.Client(trust_env=False, follow_redirects=False, timeout=PATIENCE_S, verify=False)


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _line(stream: IO[bytes] | None) -> dict[str, Any]:
    """The next line; the end of the stream where the process died."""
    assert stream is not None
    line = stream.readline()
    assert line, "the identity provider ended; see its output in .provider/server.log"
    return dict(orjson.loads(line))


def installed() -> Path:
    """The folder with the packages of the lock, installed once; several test processes wait for each other."""
    if not _has_node():
        pytest.skip("Node.js 20 or newer with npm is not on this machine, and the identity provider runs on it")
    lock = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES[:3])).hexdigest()
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        stamp = CACHE / "installed"
        if not stamp.exists() or stamp.read_text() != lock:
            for name in FILES[:3]:
                shutil.copyfile(HERE / name, CACHE / name)
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            assert done.returncode == 0, f"npm ci failed in {CACHE}: {done.stderr}"
            stamp.write_text(lock)
        shutil.copyfile(HERE / "server.mjs", CACHE / "server.mjs")
    return CACHE


def _has_node() -> bool:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(version.removeprefix("v").partition(".")[0]) >= OLDEST_NODE


@contextmanager
def running() -> Iterator[Provider]:
    """The providers, for as long as the block lasts."""
    folder = installed()
    command = ["node", "server.mjs"]
    with (
        (folder / "server.log").open("ab") as log,
        subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            told = _line(process.stdout)
            yield Provider(process, tuple(told["issuers"]), told["secret"])
        finally:
            process.kill()
