"""The environments of tox together run every test."""

import re

from tests.conftest import HERE, PROGRAMS

COMMANDS = [
    line
    for line in (HERE.parent / "tox.ini").read_text().splitlines()
    if "pytest " in line or "[testenv]run" in line
]


def test_each_test_left_out_of_the_main_environment_has_its_own() -> None:
    (ignored,) = {
        tuple(found)
        for line in COMMANDS
        if (found := re.findall(r"--ignore (\S+)", line))
    }

    assert ignored
    assert [
        path
        for path in ignored
        if not any(line.endswith(f" {path}") for line in COMMANDS)
    ] == []
    assert any("-m programs" in line for line in COMMANDS)


def test_every_listed_directory_with_real_programs_exists() -> None:
    assert [name for name in PROGRAMS if not (HERE / name).exists()] == []
