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

One library serves policies and fakeapi. Measured with three comparisons of a pod's fields, on one
core and Python 3.11:

    ours (closures; the library for the rest)    2.6 µs; 30 µs   types with columns    16 MB
    common-expression-language 0.10.0 alone      14 µs           no types               16 MB
    cel-expr-python 0.1.3 (cel-cpp)              5.8 µs          see below              50 MB

cel-expr-python has types only for protobuf messages, or for each field as a variable of its own
(4.1 µs). It refuses more than 32 operators in a row, and cannot return values of types such as
Quantity, which fakeapi needs. So expressions of policies are checked and evaluated as fakeapi's.

Sources: k8s.io/apiserver/pkg/cel, github.com/google/cel-go.
"""
