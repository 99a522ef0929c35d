"""Reads the JSON of AuthZEN 1.0: structure by the specification, unknown fields ignored, faults as 400."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import orjson
from pydantic import ConfigDict, Field

from gateway.errors import Invalid, Malformed
from gateway.keys import LONGEST_WORD
from gateway.operations.decision_point import Ask, Failed, Semantic, Several
from gateway.operations.searches import Search
from gateway.tools.arguments import Arguments, parse
from gateway.web.api.endpoint import Incoming

MOST_EVALUATIONS: Final = 100
MOST_RESULTS: Final = 200
RESULTS: Final = 50
_JSON: Final = "application/json"
_ENTITIES: Final = ("subject", "action", "resource", "context")

Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD)]
Properties = dict[str, Any]


class Read(Arguments):
    """The base: what is not known is ignored, so that newer callers are understood (section 3)."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Kind(Read):
    """An entity that a search looks for; an id beside the type is ignored (sections 8.4, 8.5)."""

    type: Word
    properties: Properties = Field(default_factory=dict)


class Entity(Kind):
    """A subject or a resource (sections 5.1, 5.2)."""

    id: Word


class Doing(Read):
    """An action (section 5.3)."""

    name: Word
    properties: Properties = Field(default_factory=dict)


class Context(Read):
    """Where it is asked from (section 5.4): the session, and the kind of the turn. The rest is nothing to us."""

    session: Word | None = None
    kind: Word | None = None


class EvaluationBody(Read):
    """`POST /access/v1/evaluation`."""

    subject: Entity
    action: Doing
    resource: Entity
    context: Context = Context()


class Options(Read):
    """How several questions are answered."""

    evaluations_semantic: str = str(Semantic.EXECUTE_ALL)


class EvaluationsBody(Read):
    """`POST /access/v1/evaluations`: the questions, and what holds for those that don't say it themselves."""

    subject: Properties | None = None
    action: Properties | None = None
    resource: Properties | None = None
    context: Properties | None = None
    evaluations: list[Any] = Field(default_factory=list)
    options: Options = Options()


class Paging(Read):
    """Where results go on, and how many at most. Drafts call the token `next_token` here too."""

    token: Annotated[str, Field(max_length=2_048)] = ""
    next_token: Annotated[str, Field(max_length=2_048)] = ""
    limit: Annotated[int, Field(ge=1)] = RESULTS


class SubjectSearchBody(Read):
    """`POST /access/v1/search/subject`."""

    subject: Kind
    action: Doing
    resource: Entity
    context: Context = Context()
    page: Paging = Paging()


class ResourceSearchBody(Read):
    """`POST /access/v1/search/resource`."""

    subject: Entity
    action: Doing
    resource: Kind
    context: Context = Context()
    page: Paging = Paging()


class ActionSearchBody(Read):
    """`POST /access/v1/search/action`."""

    subject: Entity
    resource: Entity
    context: Context = Context()
    page: Paging = Paging()


BodyT = TypeVar("BodyT", bound=Read)
SearchBody = SubjectSearchBody | ResourceSearchBody | ActionSearchBody


async def evaluation(incoming: Incoming) -> Ask:
    """One question. Raises Malformed."""
    return _ask(_as(EvaluationBody, await _json(incoming)))


async def evaluations(incoming: Incoming) -> Ask | Several:
    """Several questions; one where there is no list of them, or an empty one (section 7.1). Raises Malformed."""
    data = await _json(incoming)
    body = _as(EvaluationsBody, data)
    if not body.evaluations:
        return _ask(_as(EvaluationBody, data))
    if len(body.evaluations) > MOST_EVALUATIONS:
        raise Malformed.of("evaluations", "count", f"Ask at most {MOST_EVALUATIONS} questions at once.")
    semantic = body.options.evaluations_semantic
    if semantic not in Semantic.__members__.values():
        raise Malformed.of("options.evaluations_semantic", "known", f"Say one of {', '.join(Semantic)}.")
    defaults = {name: value for name in _ENTITIES if (value := getattr(body, name)) is not None}
    return Several(asks=tuple(_one(defaults, item) for item in body.evaluations), semantic=Semantic(semantic))


def search(model: type[SearchBody]) -> Any:
    """The reader of one kind of search."""

    async def read(incoming: Incoming) -> Search:
        body = _as(model, await _json(incoming))
        token = body.page.token or body.page.next_token
        return Search(ask=_ask(body), limit=min(body.page.limit, MOST_RESULTS), token=token or None)

    return read


def _one(defaults: Mapping[str, Any], item: object) -> Ask | Failed:
    """One of several: what it says itself stands for the whole entity, and takes only `type` and `id` from above."""
    try:
        if not isinstance(item, Mapping):
            raise Malformed.of("evaluation", "object", "Each evaluation is a JSON object.")
        merged = {**defaults, **{name: item[name] for name in _ENTITIES if name in item}}
        for name in ("subject", "resource"):
            above, said = defaults.get(name), item.get(name)
            if above is not None and isinstance(said, Mapping):
                merged[name] = {key: above[key] for key in ("type", "id") if key in above} | dict(said)
        return _ask(_as(EvaluationBody, merged))
    except Malformed as error:
        return Failed(error.detail)


def _ask(body: EvaluationBody | SearchBody) -> Ask:
    if body.context.kind is not None and body.context.session is None:
        message = "It is the kind of the turn in a session; say which."
        raise Malformed.of("context.kind", "session", message)
    doing = getattr(body, "action", None)
    return Ask(
        subject_type=body.subject.type,
        subject=getattr(body.subject, "id", None),
        action=None if doing is None else doing.name,
        resource_type=body.resource.type,
        resource=getattr(body.resource, "id", None),
        session=body.context.session,
        kind=body.context.kind,
        extra=bool(body.subject.properties or body.resource.properties or (doing is not None and doing.properties)),
    )


def _as(model: type[BodyT], data: object) -> BodyT:
    try:
        return parse(model, data)
    except Invalid as error:
        raise Malformed(error.faults) from None


async def _json(incoming: Incoming) -> Any:
    kind = (incoming.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise Malformed.of("Content-Type", "json", f"Send {_JSON}.")
    try:
        return orjson.loads(await incoming.raw_body())
    except orjson.JSONDecodeError:
        raise Malformed.of("body", "json", "Send a JSON object.") from None
