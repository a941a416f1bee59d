"""Skips the rows where the plugins they need are missing; the page is tested everywhere."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("pytest_forked") and find_spec("pytest_rerunfailures")
    else ["test_rows.py"]
)
