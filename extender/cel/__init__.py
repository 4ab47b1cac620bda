"""CEL as Kubernetes has it: expressions are type-checked when they are written, then evaluated.

    pod_expression         expressions of policies, over a pod
    expression_parser      the syntax tree of an expression (syntax_tree), with macros expanded
                           (macro_expansion)
    type_checker           the type of an expression (cel_types), from those of its variables and
                           functions (function_declarations), and of the messages that it creates
                           (patch_types); errors as cel-go prints them (source_errors)
    parser                 the tokens of an expression, optional field selection, and the CEL
                           library, if it is installed (extra ``cel``)
    macros                 macros of two variables and fields in backticks, rewritten
    kubernetes_functions   the functions that Kubernetes adds to CEL
    identifiers            reserved words, and escaped names
    string_formats         formats of texts, such as UUIDs
    compilation            compiled expressions, which are evaluated by closures
                           (native_evaluation) or by the library

Sources: k8s.io/apiserver/pkg/cel, github.com/google/cel-go.
"""
