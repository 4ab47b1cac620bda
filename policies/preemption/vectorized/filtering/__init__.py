"""The filters of :mod:`policies.preemption.filtering` on columns, file by file."""
