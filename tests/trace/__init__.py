# ruff: noqa: A005  # named as the package that it tests
