"""Custom resources that are served: their definitions, and their versions.

Modules:

    definitions          the kinds of the stored definitions, and the controllers of definitions
    versioned_store      the store, with custom resources in the requested version
    conversion_webhook   conversion between versions, also by webhooks
"""
