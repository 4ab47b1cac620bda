"""What is compiled, where a compiler is there; pyproject.toml says all else."""

from setuptools import Extension, setup

COMPILED = ("policies/kubernetes/_packed_names", "policies/preemption/vectorized/_dry_run")

setup(
    ext_modules=[
        Extension(
            path.replace("/", "."),
            [f"{path}.c"],
            extra_compile_args=["-O3"],  # loops over bytes take many at once
            optional=True,
        )
        for path in COMPILED
    ]
)
