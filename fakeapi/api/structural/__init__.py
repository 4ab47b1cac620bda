"""Structural schemas: what a CustomResourceDefinition says of its objects, compiled once.

    nodes        a schema as a tree of what pruning, defaulting and lists ask about
    pruning      fields that the schema does not know go, and so do nulls that it does not allow
    filling      defaults
    checking     a schema as one function from a value to its faults
    values, quantifiers, formats, patterns     what that function is put together from
    listtypes    sets without twins, maps without equal keys
    embedded     objects inside of objects
    shapes       the structural type by which applies merge and fields are owned

Sources: k8s.io/apiextensions-apiserver/pkg/apiserver/schema, k8s.io/kube-openapi/pkg/validation.
"""
