"""Turns events into lines and checks that no secret and nobody's words are in them (design section 13, style 14)."""

from __future__ import annotations

import io
import logging
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from gateway.logs import REQUEST, TEXT_FIELDS, WITHHELD, LibraryLines, configure
from gateway.settings import load
from tests.conftest import LogCapture

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789-_"
BODY = st.text(ALPHABET, min_size=21, max_size=60)
SECRET = st.one_of(
    BODY.map(lambda body: (f"gwp_{body}", body)),
    BODY.map(lambda body: (f"GWT_{body}", body)),
    BODY.map(lambda body: (f"eyJhbGciOiJSUzI1NiJ9.{body}.{body}", body)),
    BODY.map(lambda body: (f"Bearer {body}", body)),
    BODY.map(lambda body: (f"authorization: Basic {body}", body)),
    BODY.map(lambda body: (f"{{'Authorization': '{body}'}}", body)),
    BODY.map(lambda body: (f"b'authorization', b'{body}'", body)),
    BODY.map(lambda body: (f"postgresql://gateway:{body}@db/main", body)),
)
AROUND = st.text(max_size=20)
FIELD = st.one_of(st.sampled_from(sorted(TEXT_FIELDS - {"event"})), st.text("abcxyz_", min_size=1, max_size=8))


def captured(format_: str = "json", level: str = "debug") -> tuple[io.BytesIO, structlog.typing.FilteringBoundLogger]:
    stream = io.BytesIO()
    settings = load(Path("/dev/null"), {"GATEWAY_LOG__FORMAT": format_, "GATEWAY_LOG__LEVEL": level})
    return stream, configure(settings, stream)("test")


@given(st.sampled_from(["json", "console"]), SECRET, AROUND, AROUND, FIELD, st.booleans())
def test_no_secret_survives_in_any_field_or_format(
    format_: str, secret: tuple[str, str], before: str, after: str, field: str, listed: bool
) -> None:
    """Style 14: never a token; redaction is a processor, so it holds for every call in every module."""
    whole, body = secret
    value = before + whole + after
    stream, log = captured(format_)

    log.info(value)
    log.info("it_happened", **{field: [value] if listed else value})
    log.bind(**{field: value}).warning("it_happened")
    log.info("it_happened", **{value: 1})
    try:
        raise ValueError(value)
    except ValueError:
        log.exception("it_failed")

    assert stream.getvalue().count(b"\n") == 5
    assert body not in stream.getvalue().decode()


@given(st.text(min_size=1).filter(lambda text: text not in WITHHELD))
def test_text_is_kept_in_the_closed_list_of_fields_alone(text: str) -> None:
    """Style 14: never message text. A field that is not in TEXT_FIELDS says that something was there, and no more."""
    stream, log = captured()

    log.info("message_posted", content=text, data=text.encode("utf-8", "replace"), more={"text": text}, size=len(text))

    line = orjson.loads(stream.getvalue())
    assert (line["content"], line["data"], line["more"]) == (WITHHELD, WITHHELD, WITHHELD)
    assert line["size"] == len(text)


def test_a_line_carries_what_an_operator_needs(logs: LogCapture) -> None:
    """Ours: a fixed word, its logger, level, time, and the fields that the closed list allows."""
    at = datetime(2026, 12, 1, 9, tzinfo=UTC)

    logs.loggers("policy").info("policy_published", tenant="acme", version=3, until=at, agent=("flight",), ratio=0.5)

    [line] = logs.lines
    assert line.pop("at").endswith("Z")
    assert line == {
        "event": "policy_published",
        "logger": "policy",
        "level": "info",
        "tenant": "acme",
        "version": 3,
        "until": "2026-12-01T09:00:00+00:00",
        "agent": ["flight"],
        "ratio": 0.5,
    }


def test_an_event_is_a_fixed_word(logs: LogCapture) -> None:
    """Style 14: a sentence made from values is where words and secrets slip in."""
    logs.loggers("x").info("alice asked for her file")
    logs.loggers("x").info("asked")

    assert [line["event"] for line in logs.lines] == ["unnamed_event", "asked"]


def test_a_value_can_neither_forge_a_line_nor_break_one(logs: LogCapture) -> None:
    """ASVS 5.0 16.4.1: log injection; and a value that JSON can't hold still gives a line."""
    logs.loggers("x").info(
        "asked", tenant='a\n{"event":"forged"}\x1b[31m\ud800', count=2**70, path="x", host="h" * 9000, tool={}
    )

    [line] = logs.lines
    assert line["tenant"] == 'a\\u000a{"event":"forged"}\\u001b[31m\\ud800'
    assert (line["count"], line["path"], line["tool"]) == (WITHHELD, WITHHELD, WITHHELD)
    assert len(line["host"]) < 400


def test_a_failure_is_told_by_its_kinds_and_places_and_not_by_its_message(logs: LogCapture) -> None:
    """Ours: messages of exceptions quote rows and requests."""
    error = ExceptionGroup("of alice", [KeyError("alice@example.test")])
    error.__cause__ = ValueError("hunter2")
    error.__cause__.__context__ = error

    try:
        raise error
    except ExceptionGroup:
        logs.loggers("x").exception("it_failed")
    logs.loggers("x").error("it_failed", exc_info=error)
    logs.loggers("x").error("nothing_failed", exc_info=False)

    first, second, third = logs.lines
    assert first["failure"] == ["builtins.ExceptionGroup", "builtins.KeyError", "builtins.ValueError"]
    assert second["failure"] == first["failure"]
    assert first["where"][-1].endswith("test_a_failure_is_told_by_its_kinds_and_places_and_not_by_its_message")
    assert "failure" not in third
    assert "alice" not in logs.text
    assert "hunter2" not in logs.text


def test_lines_of_one_request_carry_its_id(logs: LogCapture) -> None:
    """Interface, conventions: the id of an answer is found again in the log."""

    class Tag:
        def fields(self) -> dict[str, str]:
            return {"request": "req_1", "caller_request": "theirs"}

    logs.loggers("x").info("outside")
    token = REQUEST.set(Tag())
    logs.loggers("x").info("inside")
    REQUEST.reset(token)

    outside, inside = logs.lines
    assert "request" not in outside
    assert (inside["request"], inside["caller_request"]) == ("req_1", "theirs")


def test_the_level_is_the_least_that_is_written() -> None:
    """Settings: `log.level`."""
    stream, log = captured(level="warning")

    log.info("quiet")
    log.warning("loud")

    assert [orjson.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_what_libraries_log_becomes_an_event_without_their_text(logs: LogCapture) -> None:
    """Ours: asyncio and uvicorn put requests and messages of exceptions into their text."""
    library = logging.Logger("uvicorn.error")
    library.addHandler(LibraryLines(logs.loggers))

    library.info("GET /v1/x?token=gwp_1")
    library.warning("slow: %s", "alice")
    try:
        raise ValueError("alice")
    except ValueError:
        library.exception("failed for alice")

    warning, failure = logs.lines
    assert (warning["event"], warning["library"]) == ("library_warning", "uvicorn.error")
    assert (failure["event"], failure["failure"]) == ("library_error", ["builtins.ValueError"])
    assert "alice" not in logs.text


def test_without_a_stream_lines_go_to_standard_error_and_nothing_global_changes(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Style 5: no global configuration; standard output is for what a command prints."""
    before = structlog.get_config()

    configure(load(Path("/dev/null"), {}))("x").info("started")

    out, err = capfdbinary.readouterr()
    assert out == b""
    assert orjson.loads(err)["event"] == "started"
    assert structlog.get_config() == before
