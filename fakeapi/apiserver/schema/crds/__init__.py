"""Custom resources: validation of CustomResourceDefinitions, their status, and their kinds.

    definition_validation      whole definitions, in upstream's internal representation
    version_validation         versions, columns, subresources and conversion
    schema_validation          schemas
    structural_validation      structural schemas and their defaults
    definition_status          conditions, accepted names, stored versions
    custom_kinds               a definition as kinds, one for each version
    custom_resource_strategy   the compiled schema, and the strategy of custom resources

Source: k8s.io/apiextensions-apiserver/pkg.
"""
