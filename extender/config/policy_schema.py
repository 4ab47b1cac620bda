"""The JSON Schema of policy files, generated from their types.

Editors complete and check policies by it; ``deploy/policies`` has it as a file. It does not have
the rules that relate fields to each other, which ``reprieve policy check`` validates.
"""

from __future__ import annotations

import json

import msgspec

from extender.config.policy_file import KIND, PolicyFile


def policy_schema() -> str:
    """Return the schema as JSON, as the file has it."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        **msgspec.json.schema(PolicyFile),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
