"""The rows of the table for a decision point of others (AuthZEN 1.0), and the document that says where they are."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope
from typing_extensions import TypedDict

from gateway.errors import Unavailable
from gateway.operations.catalogue import Catalogue
from gateway.operations.decision_point import USER, Evaluated
from gateway.operations.searches import Results, Search
from gateway.settings import Settings, is_loopback
from gateway.tools.registry import AnyOperation
from gateway.web import authzen_words as words
from gateway.web.api.endpoint import Answered, Endpoint, Incoming, json

METADATA = "/.well-known/authzen-configuration"
_PATH = "/access/v1"
_ENDPOINTS = {
    "access_evaluation_endpoint": "/evaluation",
    "access_evaluations_endpoint": "/evaluations",
    "search_subject_endpoint": "/search/subject",
    "search_resource_endpoint": "/search/resource",
    "search_action_endpoint": "/search/action",
}


class Because(TypedDict, total=False):
    """Why: a reason code, the id of the record and the epoch that it was decided at."""

    reason: str
    decision: str
    epoch: int
    error: dict[str, Any]


class DecisionShape(TypedDict):
    """An answer to a question."""

    decision: bool
    context: Because


class DecisionsShape(TypedDict, total=False):
    """Answers in the order of the questions; or the answer to one, where there was one."""

    evaluations: list[DecisionShape]
    decision: bool
    context: Because


class PageShape(TypedDict):
    """Where results go on: an empty token says that they end here."""

    next_token: str
    count: int


class ResultsShape(TypedDict):
    """What a search found."""

    results: list[dict[str, str]]
    page: PageShape


def for_decision_points(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    """The rows."""
    point, searches = catalogue.decision_point, catalogue.searches

    def several(answered: Answered) -> Response:
        if isinstance(answered.result, Evaluated):
            return json(_answer(answered.result))
        return json({"evaluations": [_answer(one) for one in answered.result]})

    return (
        Endpoint(
            method="POST",
            path=f"{_PATH}/evaluation",
            operations=(point.evaluation,),
            read=words.evaluation,
            write=lambda answered: json(_answer(answered.result)),
            summary=point.evaluation.summary,
            body=words.EvaluationBody,
            shape=DecisionShape,
        ),
        Endpoint(
            method="POST",
            path=f"{_PATH}/evaluations",
            operations=(point.evaluations, point.evaluation),
            choose=point.choose,
            name=point.evaluations.name,
            read=words.evaluations,
            write=several,
            summary=point.evaluations.summary,
            body=words.EvaluationsBody,
            shape=DecisionsShape,
        ),
        _search("subject", searches.subjects, words.SubjectSearchBody),
        _search("resource", searches.resources, words.ResourceSearchBody),
        _search("action", searches.actions, words.ActionSearchBody),
    )


def _search(what: str, operation: AnyOperation, body: type[words.SearchBody]) -> Endpoint:
    """One search. What it found is written with the type that was asked for."""
    reads = words.search(body)

    async def read(incoming: Incoming) -> Search:
        found: Search = await reads(incoming)
        return found

    def write(answered: Answered) -> Response:
        return json(_results(what, answered.result))

    return Endpoint(
        method="POST",
        path=f"{_PATH}/search/{what}",
        operations=(operation,),
        read=read,
        write=write,
        summary=operation.summary,
        body=body,
        shape=ResultsShape,
    )


def _answer(one: Evaluated) -> DecisionShape:
    context: Because = {"reason": one.reason, "epoch": one.epoch}
    if one.decision is not None:
        context["decision"] = one.decision
    if one.error is not None:
        context["error"] = {"status": 400, "message": one.error}
    return {"decision": one.allowed, "context": context}


def _results(what: str, found: Results) -> ResultsShape:
    if what == "action":
        results = [{"name": name} for name in found.found]
    else:
        kind = USER if what == "subject" else found.kind
        results = [{"type": kind, "id": one} for one in found.found]
    return {"results": results, "page": {"next_token": found.next_token or "", "count": len(results)}}


def metadata_route(settings: Settings) -> Route:
    """Where a decision point says what it is called. Public: it shows an address that whoever asks has used."""

    async def metadata(request: Request) -> Response:
        name = _identifier(settings, request.scope)
        if name is None:
            raise Unavailable(
                "This gateway can be reached from other machines and was not told by which address: the operator sets "
                "login.public_url."
            )
        return json({"policy_decision_point": name} | {field: f"{name}{_PATH}{at}" for field, at in _ENDPOINTS.items()})

    return Route(METADATA, metadata, methods=["GET"])


def _identifier(settings: Settings, scope: Scope) -> str | None:
    """The address that callers see us at: from the settings, and never from what a request calls us."""
    if settings.login.public_url is not None:
        return settings.login.public_url
    server = settings.server
    if not is_loopback(server.host):
        return None
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"http://{host}:{server.port or scope['server'][1]}"  # 0 is a port that the system chose: our socket's
