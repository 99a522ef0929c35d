"""`gateway serve`, really started on a free port: what it prints works when pasted, and nothing is lost at its end."""

from __future__ import annotations

import hashlib
import http.client
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

import orjson
import pytest

from gateway.cli.failures import UNAVAILABLE, USAGE
from tests.terminal import ROOT, Terminal, environment

BOUND_S = 60.0
SECRET = re.compile(r"gwp_[0-9A-Za-z]{49}")


class Process:
    """A gateway in a process of its own."""

    def __init__(self, state: Path, *words: str) -> None:
        with (state.parent / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gateway", "serve", "--port", "0", *words],
                cwd=state.parent,
                env={**environment(state), "GATEWAY_LOG__LEVEL": "debug"},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._watchdog = threading.Timer(BOUND_S, self._process.kill)
        self._watchdog.start()
        self.printed: list[str] = []

    def listens(self) -> str:
        """Where it listens, once it does."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.printed.append(line.rstrip("\n"))
            if line.startswith("The gateway listens on "):
                return line.split()[-1]
        raise AssertionError(f"it ended with {self._process.wait()}: {self.printed}")

    def signal(self) -> None:
        """Asks it to end."""
        self._process.send_signal(signal.SIGTERM)

    def ends(self) -> int:
        """Its exit code."""
        with self._process:
            code = self._process.wait(BOUND_S)
        self._watchdog.cancel()
        return code


@contextmanager
def serving(state: Path, *words: str) -> Iterator[tuple[Process, str]]:
    """A gateway that listens; it is ended afterwards in any case."""
    process = Process(state, *words)
    try:
        yield process, process.listens()
    finally:
        process.signal()
        process.ends()


@dataclass(frozen=True)
class Story:
    """What two starts of one state folder printed and answered."""

    state: Path
    first: list[str]
    answers: list[str]
    second: list[str]
    codes: tuple[int, int]
    still: str
    stderr: str
    workspaces_before: dict[str, str]
    workspaces_after: dict[str, str]


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() + str(path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _run(line: str) -> str:
    """Runs a printed command as a shell would."""
    done = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=BOUND_S, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The first start with its curl lines, and the second start."""
    state = tmp_path_factory.mktemp("served") / ".gateway"
    before = _hashes(ROOT / "workspaces")
    first = Process(state, "--demo")
    first.listens()
    curls = [line.strip() for line in first.printed if line.startswith("  curl ")]
    answers = [_run(line) for line in curls]
    first.signal()
    first_code = first.ends()
    second = Process(state, "--demo")
    url = second.listens()
    token = next(iter(SECRET.findall(curls[0])))
    still = _run(f"curl -s -H 'Authorization: Bearer {token}' {url}/v1/me")
    second.signal()
    return Story(
        state=state,
        first=first.printed,
        answers=answers,
        second=second.printed,
        codes=(first_code, second.ends()),
        still=still,
        stderr=(state.parent / "stderr").read_text(encoding="utf-8"),
        workspaces_before=before,
        workspaces_after=_hashes(ROOT / "workspaces"),
    )


def test_the_first_start_prints_people_roles_and_tokens_once(story: Story) -> None:
    """Issue, "Start": a token for each, once, and three curl lines; a second start finds the state again."""
    rows = [line.split() for line in story.first if SECRET.search(line) and "curl" not in line]
    people = [(row[0], row[1]) for row in rows]
    assert people == [
        ("alice", "member"),
        ("bob", "member"),
        ("carol", "member"),
        ("dana", "supervisor"),
        ("erin", "admin"),
        ("audrey", "auditor"),
    ]
    assert len({row[2] for row in rows}) == 6
    assert len(story.answers) == 3

    assert len(story.second) == 2
    assert "gateway token create alice" in story.second[0]
    assert not SECRET.search("\n".join(story.second))
    assert orjson.loads(story.still)["profile"]["name"] == "alice"


def test_a_start_that_was_killed_before_it_told_the_tokens_is_made_up_for(terminal: Terminal) -> None:
    """Ours: the state folder here holds a demo that was made and never told; the next start prints new tokens, once,
    for the same people and the same sessions, and the one after says that they were printed."""
    sessions = terminal.run("sessions", "list", who="alice").out
    with serving(terminal.state, "--demo") as (process, _url):
        told = [line.split() for line in process.printed if SECRET.search(line) and "curl" not in line]
        printed = "\n".join(process.printed)
    with serving(terminal.state, "--demo") as (process, _url):
        assert not SECRET.search("\n".join(process.printed))

    secrets = {row[0]: row[2] for row in told}
    assert set(secrets) == set(terminal.demo.secrets)
    assert set(secrets.values()).isdisjoint(terminal.demo.secrets.values())
    assert terminal.demo.private in printed
    assert terminal.demo.group in printed
    again = replace(terminal, demo=replace(terminal.demo, secrets=secrets))
    assert again.run("sessions", "list", who="alice").out == sessions


def test_the_printed_lines_work_when_pasted(story: Story) -> None:
    """Issue, "What it must show" 1: shared then personal; the bytes of a missing session; no MEMORY.md in the group."""
    alices, bobs, groups = story.answers
    text = orjson.loads(alices)["text"]
    assert text.index("About the service desk") < text.index("How to answer me")
    assert bobs.startswith("HTTP/1.1 404 ")
    assert "server:" not in bobs.lower()
    assert '"code":"not_found"' in bobs
    manifest = {one["path"]: one["reason"] for one in orjson.loads(groups)["manifest"]}
    assert manifest["MEMORY.md"] == "group_session"
    assert manifest["AGENTS.md"] is None
    assert "Long-term memory\n" not in orjson.loads(groups)["text"]


def test_the_audit_of_a_start_survives_its_signal(story: Story, terminal: Terminal) -> None:
    """SIGTERM drains: exit code 0, and the last records are on the disk and sound."""
    assert story.codes == (0, 0)
    here = Terminal(story.state, terminal.demo, terminal.ids)
    records = [orjson.loads(line) for line in here.run("audit", "export", "--kind", "access").out.splitlines()]
    asked = [(one["operation"], one["effect"]) for one in records if one["surface"] == "rest"]
    assert asked == [
        ("context.assemble", "allow"),
        ("sessions.show", "deny"),
        ("context.assemble", "allow"),
        ("me.show", "allow"),
    ]
    made = [one["operation"] for one in records if one["surface"] == "cli"]
    assert made[:5] == [
        "personal_instructions.set",
        "sessions.create",
        "sessions.list",
        "me.show",
        "sessions.create",
    ]
    assert here.run("audit", "verify").code == 0


def test_the_example_is_copied_and_never_written(story: Story) -> None:
    """Issue, "Start": state goes to the state folder; `workspaces/` in the repository is never written."""
    assert story.workspaces_before == story.workspaces_after
    copy = story.state / "workspaces" / "demo" / "flight"
    assert (copy / "AGENTS.md").read_bytes() == (ROOT / "workspaces/demo/flight/AGENTS.md").read_bytes()
    assert list(copy.glob("users/*/USER.md")) != []
    assert not (ROOT / "workspaces/demo/flight/users").exists()


def test_no_secret_is_in_a_log_line(story: Story) -> None:
    """Tokens go to standard output, once, and nowhere else."""
    assert "gwp_" not in story.stderr
    assert "Bearer" not in story.stderr


def test_a_signal_waits_for_what_has_begun(terminal: Terminal) -> None:
    """A request whose body is still on its way is answered after the signal; new ones are refused."""
    body = b'{"kind": "group", "title": "Last one"}'
    token = terminal.demo.secrets["alice"]
    head = (
        f"POST /v1/agents/flight/sessions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    process = Process(terminal.state)
    host, port = process.listens().removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=BOUND_S) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # the app is reading the body
        process.signal()
        _wait_until_refused(host, int(port))
        connection.sendall(body)
        answer = b""
        while more := connection.recv(65536):
            answer += more

    assert answer.startswith(b"HTTP/1.1 201 ")
    assert process.ends() == 0
    assert "Last one" in terminal.run("sessions", "list", who="alice").out


def _wait_until_refused(host: str, port: int) -> None:
    begun = monotonic()
    while monotonic() - begun < BOUND_S:
        try:
            socket.create_connection((host, port), timeout=BOUND_S).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # the kernel had taken it when the listener was closed
            continue
    raise AssertionError("it still takes connections")


def test_every_fault_is_told_at_once_and_nothing_starts(terminal: Terminal) -> None:
    """Issue, "Start": every fault reported at once with its name, and no start; an option by its own name."""
    answer = terminal.run("serve", "--port", "eighty", env={"GATEWAY_LOG__LEVEL": "loud", "GATEWAY_PORT": "1"})

    assert (answer.code, answer.out) == (USAGE, "")
    for name in ("--port", "GATEWAY_LOG__LEVEL", "GATEWAY_PORT"):
        assert f"  {name}: " in answer.err


@pytest.mark.parametrize("words", [("--demo",), ("--no-demo",)])
def test_the_demo_is_not_served_to_others(terminal: Terminal, words: tuple[str, ...]) -> None:
    """Design section 5: it refuses to start on an address that is not loopback, also where it was made earlier."""
    answer = terminal.run("serve", "--host", "0.0.0.0", "--port", "0", *words)

    assert (answer.code, answer.out) == (USAGE, "")
    assert "0.0.0.0 can be reached from elsewhere" in answer.err


def test_a_port_that_is_taken_is_unavailable(terminal: Terminal, tmp_path: Path) -> None:
    """Exit code 4, before a demo is made whose tokens nobody would have seen."""
    empty = tmp_path / "empty"
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        answer = terminal.run("serve", "--demo", "--port", port, env={"GATEWAY_STATE__FOLDER": str(empty)})

    assert (answer.code, answer.out) == (UNAVAILABLE, "")
    assert f"127.0.0.1 port {port}" in answer.err
    assert not empty.exists()


def test_an_address_that_is_none_is_a_fault(terminal: Terminal) -> None:
    """Exit code 2."""
    answer = terminal.run("serve", "--host", "not an address", "--port", "0", "--no-demo")

    assert answer.code == USAGE
    assert "server.host" in answer.err


def test_a_secret_that_is_not_there_is_a_fault_of_what_serves_alone(terminal: Terminal) -> None:
    """Exit code 2 with its name, before anything listens; a command that no channel calls needs no secret."""
    account = {"channel": "line", "account": "support", "tenant": "demo", "agent": "flight"}
    entry = {**account, "service": "prf_01JVBRNGER0000000000000000", "secret_env": "NO_SUCH_SECRET"}
    env = {"GATEWAY_CONNECTORS__ACCOUNTS": orjson.dumps([entry]).decode()}

    answer = terminal.run("serve", "--port", "0", "--no-demo", env=env)

    assert (answer.code, answer.out) == (USAGE, "")
    assert "connectors.accounts[0].secret_env" in answer.err
    assert "Traceback" not in answer.err
    assert terminal.run("people", "list", "--tenant", "demo", env=env).code == 0


def test_a_tenant_of_that_name_is_not_taken_for_the_demo(terminal: Terminal, tmp_path: Path) -> None:
    """Somebody's own tenant `demo` gets no people whose tokens are printed."""
    own = {"GATEWAY_STATE__FOLDER": str(tmp_path / "own")}
    assert terminal.run("tenants", "add", "demo", "--owner", "alice@example.com", env=own).code == 0

    answer = terminal.run("serve", "--demo", "--port", "0", env=own)

    assert (answer.code, answer.out) == (USAGE, "")
    assert "demo.enabled" in answer.err
    assert "bob" not in terminal.run("people", "list", env=own).out


def test_it_listens_on_ipv6_too(terminal: Terminal) -> None:
    """The printed address can be pasted as it is."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback address")
    with serving(terminal.state, "--host", "::1") as (_process, url):
        assert url.startswith("http://[::1]:")
        assert orjson.loads(_run(f"curl -s -g {url}/livez")) == {"status": "ok"}


PROXIES = """
[[proxies.headers]]
header = "X-Local-User"
networks = ["127.0.0.2/32"]
issuer = "local-proxy"
tenant = "demo"
allow_loopback = true

[[proxies.headers]]
header = "X-Far-User"
networks = ["192.0.2.10/32"]
issuer = "far-proxy"
tenant = "demo"
"""


def _status(url: str, headers: dict[str, str], source: str) -> int:
    """What the gateway answers over a connection whose own end is `source`."""
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=BOUND_S, source_address=(source, 0))
    try:
        connection.request("GET", "/v1/me", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_peer_is_the_other_end_of_the_connection_whatever_a_header_says(terminal: Terminal) -> None:
    """Design section 5.3: the server must not take `X-Forwarded-For` for the peer, as it would from loopback."""
    for issuer in ("local-proxy", "far-proxy"):
        assert terminal.run("people", "link", "alice", "--issuer", issuer, "--subject", "alice").code == 0
    config = terminal.state.parent / "proxies.toml"
    config.write_text(PROXIES, encoding="utf-8")
    local, far = {"X-Local-User": "alice"}, {"X-Far-User": "alice"}
    with serving(terminal.state, "--config", str(config)) as (_process, url):
        assert _status(url, local, "127.0.0.2") == 200
        assert _status(url, local, "127.0.0.1") == 401
        assert _status(url, far, "127.0.0.2") == 401
        for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded"):
            for claim in ("192.0.2.10", "192.0.2.10, 127.0.0.1", "for=192.0.2.10"):
                assert _status(url, far | {name: claim}, "127.0.0.1") == 401
                assert _status(url, local | {name: claim}, "127.0.0.2") == 200
            assert _status(url, local | {name: "127.0.0.2"}, "127.0.0.1") == 401
        assert _status(url, {"X_Local_User": "alice"}, "127.0.0.2") == 401


def test_the_headers_of_proxies_come_as_they_were_sent_on_a_real_connection(terminal: Terminal) -> None:
    """Design section 5.3: exactly one value, by any spelling that a server could fold."""
    assert terminal.run("people", "link", "alice", "--issuer", "local-proxy", "--subject", "alice").code == 0
    config = terminal.state.parent / "proxies.toml"
    config.write_text(PROXIES, encoding="utf-8")
    alice = "X-Local-User: alice"
    with serving(terminal.state, "--config", str(config)) as (_process, url):
        for lines, status in (
            ([alice], 200),
            (["x-LOCAL-user:alice"], 200),
            (["X-Local-User:  alice  "], 200),
            ([alice, "X_Local_User: bob", "x-local_user: bob"], 200),
            ([alice, "X-LOCAL-USER: bob"], 401),
            ([alice, alice], 401),
            (["X-Local-User: alice,bob"], 401),
            (["X-Local-User:"], 401),
        ):
            assert _raw_status(url, lines, "127.0.0.2") == status, lines


def _raw_status(url: str, lines: list[str], source: str) -> int:
    host, port = url.removeprefix("http://").split(":")
    head = "\r\n".join(["GET /v1/me HTTP/1.1", "Host: gateway", "Connection: close", *lines, "", ""])
    with socket.create_connection((host, int(port)), timeout=BOUND_S, source_address=(source, 0)) as connection:
        connection.sendall(head.encode())
        answer = b""
        while more := connection.recv(65536):
            answer += more
    return int(answer.split(b" ", 2)[1])
