"""The rows need plugins that users may have; without these plugins, only the table is tested."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("pytest_forked") and find_spec("pytest_rerunfailures") else ["test_rows.py"]
