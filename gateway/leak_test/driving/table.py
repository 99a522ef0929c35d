"""Every route and tool with how it is driven, held against those that the app really has.

Whoever adds a route or a tool adds its line here; until then the command fails and names it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from gateway.leak_test.driver import Driver
from gateway.leak_test.driving import admins, contexts, decisions, explaining, oneself, outside, reach, sessions, tools
from gateway.leak_test.driving.toolbox import TOOL_ROUTE, tool_row
from gateway.leak_test.world import Caller
from gateway.operations.catalogue import Catalogue
from gateway.web.api.endpoint import Endpoint, EndpointApp
from gateway.web.app import PUBLIC

Ask = Callable[[Driver, Caller], Awaitable[None]]

ROUTES: Mapping[str, Ask] = {
    "GET /v1/sessions": sessions.lists,
    "GET /v1/agents/{agent}/sessions": sessions.lists_of_agents,
    "GET /v1/sessions/{session}": sessions.shown,
    "GET /v1/sessions/{session}/messages": sessions.messages,
    "POST /v1/sessions/{session}/context": contexts.contexts,
    TOOL_ROUTE: tools.drive,
    "POST /v1/sessions/{session}/messages": sessions.posting,
    "PATCH /v1/sessions/{session}": sessions.patching,
    "PUT /v1/sessions/{session}/owner": sessions.owning,
    "POST /v1/sessions/{session}/archive": sessions.archiving,
    "POST /v1/sessions/{session}/reset": sessions.resetting,
    "DELETE /v1/sessions/{session}": sessions.deleting,
    "POST /v1/agents/{agent}/sessions": sessions.creating,
    "GET /v1/agents/{agent}/personal-instructions": oneself.instructions,
    "PUT /v1/agents/{agent}/personal-instructions": oneself.saving,
    "GET /v1/me": oneself.me,
    "GET /v1/agents": oneself.agents,
    "GET /v1/tools": oneself.tools,
    "GET /v1/me/tokens": oneself.tokens,
    "GET /v1/me/notices": oneself.notices,
    "POST /v1/me/tokens": oneself.new_token,
    "DELETE /v1/me/tokens/{token}": oneself.revoking_tokens,
    "GET /v1/me/sign-ins": oneself.sign_ins,
    "DELETE /v1/me/sign-ins/{sign_in}": oneself.revoking_sign_ins,
    "POST /v1/connectors/{channel}/turns": outside.turns,
    "POST /v1/connectors/{channel}/members": outside.members,
    "GET /v1/admin/people": admins.people,
    "POST /v1/admin/people": admins.adding,
    "GET /v1/admin/people/{profile}": admins.person,
    "PATCH /v1/admin/people/{profile}": admins.changing,
    "DELETE /v1/admin/people/{profile}": admins.disabling,
    "PUT /v1/admin/people/{profile}/roles": admins.roles,
    "POST /v1/admin/people/{profile}/merge": admins.merging,
    "POST /v1/admin/people/{profile}/identities": admins.linking,
    "DELETE /v1/admin/people/{profile}/identities": admins.unlinking,
    "GET /v1/admin/people/{profile}/tokens": admins.tokens,
    "POST /v1/admin/people/{profile}/tokens": admins.new_token,
    "DELETE /v1/admin/people/{profile}/tokens/{token}": admins.revoking,
    "GET /v1/admin/agents": admins.agents,
    "POST /v1/admin/agents": admins.new_agent,
    "GET /v1/admin/agents/{agent}": admins.agent,
    "GET /v1/admin/policy": admins.policy,
    "PUT /v1/admin/policy": admins.publishing,
    "GET /v1/admin/policy/versions": admins.versions,
    "GET /v1/admin/policy/versions/{version}": admins.version,
    "POST /v1/admin/policy/versions/{version}/rollback": admins.rolling_back,
    "POST /v1/me/explain": explaining.my_decisions,
    "POST /v1/admin/policy/explain": explaining.explain,
    "POST /v1/admin/policy/preview": explaining.preview,
    "GET /v1/admin/policy/watch": explaining.watch,
    "GET /v1/admin/policy/who-can": reach.who_can,
    "GET /v1/admin/policy/what-can": reach.what_can,
    "POST /access/v1/evaluation": decisions.evaluation,
    "POST /access/v1/evaluations": decisions.evaluations,
    "POST /access/v1/search/subject": decisions.subjects,
    "POST /access/v1/search/resource": decisions.resources,
    "POST /access/v1/search/action": decisions.actions,
    "GET /v1/admin/audit": admins.audit,
    "GET /v1/admin/audit/verify": admins.verify,
}
# Requests that belong to no one route.
BESIDES: tuple[Ask, ...] = (outside.senders, outside.faults, outside.other_tenants)
# At the very end, since they change what was planted.
LAST: tuple[Ask, ...] = (sessions.spare_session, tools.appending)
# What operations are for that no route leads to, and why they are not asked for over HTTP.
WITHOUT_ROUTE = {"audit.export": "The command line's; it reads pages as GET /v1/admin/audit does."}


def rows(app: Any) -> list[str]:
    """Every route of the app: `GET /v1/me`. HEAD goes with its GET."""
    found = []
    for route in app.routes:
        methods = sorted((getattr(route, "methods", None) or {"ANY"}) - {"HEAD"})
        found += [f"{method} {getattr(route, 'path', route)}" for method in methods]
    return found


def public_rows(app: Any) -> list[str]:
    """Those that need no credential."""
    return [row for row in rows(app) if row.partition(" ")[2] in PUBLIC]


def not_driven(app: Any, catalogue: Catalogue) -> list[str]:
    """Every route, tool and operation that the test would leave out, in words."""
    open_to_all = set(public_rows(app))
    missing = [f"the route {row}" for row in rows(app) if row not in ROUTES and row not in open_to_all]
    missing += [f"the tool {tool.name}" for tool in catalogue.tools.all() if tool.name not in tools.TOOLS]
    reached = {operation.name for endpoint in _endpoints(app) for operation in endpoint.operations}
    unreached = {operation.name for operation in catalogue.all()} - reached - set(WITHOUT_ROUTE)
    return [*missing, *(f"the operation {name}" for name in sorted(unreached))]


def arguments_not_driven(app: Any, catalogue: Catalogue, sent: Mapping[str, set[str]]) -> list[str]:
    """Every argument of a route or tool that no request carried: what it does was not looked at."""
    found = []
    for endpoint in _endpoints(app):
        row = f"{endpoint.method} {endpoint.path}"
        names = set(_names(endpoint.query)) | (set() if endpoint.body is None else set(_names(endpoint.body)))
        found += [f"{name!r} of {row}" for name in sorted(names - sent.get(row, set()))]
    for tool in catalogue.tools.all():
        row = tool_row(tool.name)
        found += [f"{name!r} of {row}" for name in sorted(set(_names(tool.arguments)) - sent.get(row, set()))]
    return found


def _endpoints(app: Any) -> Iterator[Endpoint]:
    for route in app.routes:
        served = getattr(route, "app", None)
        if isinstance(served, EndpointApp):
            yield served.endpoint


def _names(model: Any) -> Iterable[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
