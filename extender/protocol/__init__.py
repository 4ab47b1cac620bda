"""Extender/v1 on the wire, the verbs, guardrails; pure."""
