"""CEL in schemas (``x-kubernetes-validations``), and the variables of admission policies.

    declared_types        the types of variables, from a schema
    admission_variables   the types of variables of admission policies
    values                values as rules see them
    field_paths           field paths of rules
    rule_validation       the errors of a schema's rules
    evaluation            a schema's rules, evaluated for objects

Costs differ from upstream: no cost is estimated when a definition is written. The cost of an
evaluation is the number of values in its operand, to the power of the nesting depth of its macros.
The limit is one million for one evaluation, and ten million for all rules of one object.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel.
"""
