"""The extender protocol: its types, and the verbs with their guardrails; without IO."""
