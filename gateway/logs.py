"""Turns events into log lines that hold no secret and nobody's words: fixed names, closed fields, scrubbed values."""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, BinaryIO, Protocol

import orjson
import structlog
from structlog.typing import FilteringBoundLogger, Processor

from gateway.settings import Settings

Logger = FilteringBoundLogger

# The only fields that may carry text. Everything else may be a number, a truth value, a time or nothing: so a message,
# a header or a body that is handed to the log by mistake does not get there (ASVS 5.0, 16.2.5).
TEXT_FIELDS = frozenset({
    "action", "agent", "at", "backend", "caller_request", "code", "credential", "decision", "effect", "error",
    "event", "failure", "file", "host", "issuer", "kid", "level", "library", "logger", "operation", "phase",
    "profile", "request", "resource", "rule", "setting", "signal", "state", "status", "surface", "tenant", "tool",
    "version", "where",
})  # fmt: skip

WITHHELD = "(withheld)"
SECRET = "(secret)"  # noqa: S105 # what stands in a secret's place
LONGEST = 300
FRAMES = 8

_SECRETS = re.compile(
    r"""
      gw[bpt]_[^\s"',;]*                             # our own cookies, access and turn tokens
    | eyJ[\w-]*(?:\.[\w-]*)+                         # a JWT, whole or cut
    | (?:proxy-)?authorization\W.*                   # a header that somebody printed
    | (?:bearer|basic|dpop|digest)\s.*               # its value
    | //[^/\s@]*@                                    # user and password in a URL
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
# What could end a line, paint a terminal or not be written as UTF-8: a value can't forge a second line (ASVS 16.4.1).
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_EVENT = re.compile(r"[a-z][a-z0-9_]{0,63}")


class RequestTag(Protocol):
    """What a line says about the request that it was written in."""

    def fields(self) -> dict[str, str]:
        """`request`, and `caller_request` where the caller sent an id of its own."""


REQUEST: ContextVar[RequestTag | None] = ContextVar("request", default=None)


class Loggers(Protocol):
    """Gives a module its logger."""

    def __call__(self, name: str) -> Logger:
        """A logger whose lines carry `logger=name`."""


def configure(settings: Settings, stream: BinaryIO | None = None) -> Loggers:
    """Loggers that write to `stream`, or to standard error; nothing global changes.

    The level and the format are those of `settings.log`.
    """
    target = sys.stderr.buffer if stream is None else stream
    when = structlog.processors.TimeStamper(fmt="iso", utc=True, key="at")
    root = structlog.wrap_logger(
        structlog.BytesLogger(target),
        processors=[structlog.processors.add_log_level, when, _request, _failure, redact, *_rendered(settings, target)],
        wrapper_class=structlog.make_filtering_bound_logger(settings.log.level),
        context_class=dict,
        cache_logger_on_first_use=False,
    )

    def named(name: str) -> Logger:
        logger: Logger = root.bind(logger=name)
        return logger

    return named


class LibraryLines(logging.Handler):
    """Turns what a library logs into one of our events: who, how bad and what kind of failure, never its text.

    The texts of libraries hold request lines, SQL parameters and the messages of exceptions. `app.py` puts this on the
    standard library's root logger; nothing does it on import.
    """

    def __init__(self, loggers: Loggers) -> None:
        super().__init__(logging.WARNING)
        self._log = loggers("library")

    def emit(self, record: logging.LogRecord) -> None:
        """Writes `library_warning` or `library_error`."""
        where = f"{record.module}:{record.lineno}"
        if record.levelno >= logging.ERROR:
            self._log.error("library_error", library=record.name, where=where, exc_info=record.exc_info)
        else:
            self._log.warning("library_warning", library=record.name, where=where, exc_info=record.exc_info)


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Keeps what a line may carry (TEXT_FIELDS) and takes every secret out of that too."""
    name = event.get("event")
    safe: dict[str, Any] = {"event": name if isinstance(name, str) and _EVENT.fullmatch(name) else "unnamed_event"}
    for key, value in event.items():
        if key != "event":
            safe[scrub(key)] = _allowed(key, value)
    safe["event"] = scrub(safe["event"])
    return safe


def scrub(text: str) -> str:
    """The text without tokens, credentials and header values, and not longer than a line should be."""
    clean = _UNPRINTABLE.sub(_escaped, _SECRETS.sub(SECRET, text))
    return clean if len(clean) <= LONGEST else clean[:LONGEST] + "…"


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _allowed(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 64 else WITHHELD  # JSON readers, and our writer, end there
    if isinstance(value, datetime):
        return value.isoformat()
    if key not in TEXT_FIELDS:
        return WITHHELD
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list | tuple | frozenset | set):
        return [_allowed(key, one) for one in value]
    return WITHHELD


def _request(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    tag = REQUEST.get()
    if tag is not None:
        event.update(tag.fields())
    return event


def _failure(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An exception as its kinds and where it was raised; its message may quote a person and stays out."""
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event["failure"] = list(_kinds(error))
        event["where"] = list(_frames(error))
    return event


def _kinds(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield f"{type(one).__module__}.{type(one).__qualname__}"
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        waiting += [below for below in (one.__cause__, one.__context__) if below is not None]


def _frames(error: BaseException) -> Iterator[str]:
    for frame, line in list(traceback.walk_tb(error.__traceback__))[-FRAMES:]:
        yield f"{frame.f_globals.get('__name__', '?')}:{line} {frame.f_code.co_name}"


def _rendered(settings: Settings, target: BinaryIO) -> list[Processor]:
    if settings.log.format == "json":
        return [structlog.processors.JSONRenderer(serializer=orjson.dumps)]
    return [structlog.dev.ConsoleRenderer(colors=target.isatty(), timestamp_key="at"), _encoded]


def _encoded(_logger: Any, _method: str, line: Any) -> bytes:
    text: str = line
    return text.encode("utf-8", "backslashreplace")
