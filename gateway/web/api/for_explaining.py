"""The rows of the table that say why: to who may read the policy or the audit, and to a person about themselves."""

from __future__ import annotations

from gateway.operations.catalogue import Catalogue
from gateway.operations.my_decisions import MyDecisionBody
from gateway.operations.questions import ExplainBody
from gateway.web.api import shapes_explain
from gateway.web.api.endpoint import Endpoint, json, reads, row


def for_explaining(catalogue: Catalogue) -> tuple[Endpoint, ...]:
    """The rows."""
    explain, mine = catalogue.explain, catalogue.my_decisions

    return (
        Endpoint(
            method="POST",
            path="/v1/admin/policy/explain",
            operations=(explain.question, explain.decision),
            choose=explain.choose,
            name="policy.explain",
            read=reads(ExplainBody),
            write=lambda answered: json(shapes_explain.explained(answered.result)),
            summary="Says why a decision was as it was, or what somebody would be answered.",
            shape=shapes_explain.ExplainShape,
            body=ExplainBody,
        ),
        row(
            "POST",
            "/v1/me/explain",
            mine.explain,
            reads(MyDecisionBody),
            lambda answered: json(shapes_explain.my_decision(answered.result)),
            shape=shapes_explain.MyDecisionShape,
            body=MyDecisionBody,
        ),
    )
