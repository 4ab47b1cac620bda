"""CEL: rules written into schemas (``x-kubernetes-validations``).

    engine        the library that parses and evaluates, if it is installed (extra ``cel``)
    tokens        an expression in pieces
    optionals     ``self.?field``, which the library cannot read, said with functions
    references    names and fields that an expression uses although there are none such
    library       the functions that Kubernetes adds to CEL
    natives       values as rules see them
    expressions   an expression, compiled
    fieldpaths    ``.spec.size`` and ``.labels['a']``, held against a schema
    rules         what a schema's rules are, and what is wrong with them
    checking      a schema's rules, asked of objects

Cost is not that of upstream: nothing is estimated when a definition is written. An evaluation costs
the number of values it is about, to the power of how deeply its macros nest, at most a million; all
rules of one object together ten millions.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel, k8s.io/apiserver/pkg/cel.
"""
