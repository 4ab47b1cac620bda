"""What is compiled, where a compiler is there; pyproject.toml says all else."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "policies.kubernetes._packed_names",
            ["policies/kubernetes/_packed_names.c"],
            extra_compile_args=["-O3"],  # its loops over bytes take many at once
            optional=True,
        )
    ]
)
