"""Turns a policy document into evidence: marked sessions and memory in a scratch gateway, asked for by everybody.

Every mark that reaches somebody whom the policy keeps it from is a finding.
"""
