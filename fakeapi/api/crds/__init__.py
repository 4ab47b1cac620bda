"""Custom resources: what a CustomResourceDefinition declares, and what is wrong with one.

    internal     a definition as upstream's messages know it
    definitions  the rules of whole definitions
    versions, conversions     the rules of their parts
    schemas, structures, defaults     the rules of their schemas
    schemabodies schemas inside of schemas, read as Go reads them
    statuses     conditions, names, stored versions
    resources    a definition as kinds
    compiled     a schema, ready to be used
    objects      what the API asks of custom resources
    columns      their Tables
    described    their schemas, as OpenAPI shows them

Source: k8s.io/apiextensions-apiserver/pkg.
"""
