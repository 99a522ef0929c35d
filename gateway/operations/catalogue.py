"""Everything that a caller can do, in one place: the surfaces take their operations from here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from gateway.operations.agents import AgentOperations
from gateway.operations.audit import AuditOperations
from gateway.operations.connectors import ConnectorOperations
from gateway.operations.decision_point import DecisionPoint
from gateway.operations.explaining import ExplainOperations
from gateway.operations.me import MyOperations
from gateway.operations.my_decisions import MyDecisions
from gateway.operations.people import PeopleOperations
from gateway.operations.policy import PolicyOperations
from gateway.operations.preview import PreviewOperations
from gateway.operations.reach import ReachOperations
from gateway.operations.searches import Searches
from gateway.operations.sessions import SessionOperations
from gateway.tools.personal_instructions import PersonalInstructions
from gateway.tools.registry import AnyOperation, Operation, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The operations by subject, and the tools."""

    tools: Registry
    context: AnyOperation
    instructions: PersonalInstructions
    sessions: SessionOperations
    me: MyOperations
    agents: AgentOperations
    people: PeopleOperations
    policy: PolicyOperations
    preview: PreviewOperations
    reach: ReachOperations
    explain: ExplainOperations
    my_decisions: MyDecisions
    decision_point: DecisionPoint
    searches: Searches
    audit: AuditOperations
    connectors: ConnectorOperations

    def all(self) -> Iterator[AnyOperation]:
        """Every operation, those of the tools too."""
        for tool in self.tools.all():
            yield from tool.operations
        for subject in fields(self):
            held = getattr(self, subject.name)
            if isinstance(held, Operation):
                yield held
            elif not isinstance(held, Registry):
                yield from (one for one in vars(held).values() if isinstance(one, Operation))
