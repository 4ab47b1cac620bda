"""CEL: validation rules of schemas (``x-kubernetes-validations``), and admission policies.

    expression_parser      the syntax tree of an expression (syntax_tree), with macros expanded
                           (macro_expansion)
    type_checker           the type of an expression (cel_types), from those of its variables
                           (declared_types, admission_variables) and functions
                           (function_declarations); errors as cel-go prints them (source_errors)
    parser                 the tokens of an expression, optional field selection, and the CEL
                           library, if it is installed (extra ``cel``)
    macros                 macros of two variables and fields in backticks, rewritten
    kubernetes_functions   the functions that Kubernetes adds to CEL
    values                 values as rules see them
    field_paths            field paths of rules
    compilation            compiled expressions
    rule_validation        the errors of a schema's rules
    evaluation             a schema's rules, evaluated for objects

Costs differ from upstream: no cost is estimated when a definition is written. The cost of an
evaluation is the number of values in its operand, to the power of the nesting depth of its macros.
The limit is one million for one evaluation, and ten million for all rules of one object.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel, k8s.io/apiserver/pkg/cel.
"""
