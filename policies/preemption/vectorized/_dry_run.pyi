# The functions of _dry_run.c. All arrays are (depth, rows) but `left`, which is by row, and
# `allowed`, which is by budget; numbers have 64 bits, and marks one byte. Raise ValueError for
# arrays that do not belong together.

from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.vectorized.row_view import Amounts

# Take the marked pods, depth by depth, out of `victims` where each capacity (left, taken) has
# enough left, and subtract what they take.
def reprieve(
    pods: Bools, victims: Bools, capacities: tuple[tuple[Ints, Amounts], ...], /
) -> None: ...

# Mark in `violations` the pods that are more than what the budgets of their class allow on a row.
# A pod is not counted by further budgets after it violates `most`.
def count_violations(
    pods: Bools,
    classes: Ints,
    covering: Ints,
    allowed: Ints,
    violations: Bools,
    most: int,
    /,
) -> None: ...
