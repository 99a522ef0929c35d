"""A gateway in front of shared AI agents.

A request is authenticated, its person's profile is resolved, the session that it is made from is opened, the turn's
context is assembled, the policy is asked, the tool is called, and all of it is in the audit:

    authenticate → resolve_profile → open_session → assemble_context → authorize → call_tool → record_audit

`pipeline.py` is this list. Every surface goes through it; there is no second way to run a tool or to read a memory
file. Start reading there, then `docs/architecture.md`.
"""

VERSION = "0.1.0"
