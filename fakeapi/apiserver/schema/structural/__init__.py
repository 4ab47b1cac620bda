"""Structural schemas of CustomResourceDefinitions, compiled once.

    schema_tree              a schema as a tree of nodes
    pruning_and_defaulting   removal of unknown fields and forbidden nulls; defaults
    schema_validator         a schema as a validating function; list types set and map
    value_validation         checks of strings, numbers and enums; anyOf, oneOf, allOf, not
    formats                  formats and patterns of strings
    embedded_objects         x-kubernetes-embedded-resource
    schema_errors            the errors of a value

Sources: k8s.io/apiextensions-apiserver/pkg/apiserver/schema, k8s.io/kube-openapi/pkg/validation.
"""
