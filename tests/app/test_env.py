"""Environment files."""

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.app import load_env
from pytest_device.errors import ProjectError
from tests.app.rows import put, rows

pytestmark = pytest.mark.every_python


@pytest.mark.parametrize(
    "row", [one for one in rows("env") if "output" in one.values[0]]
)
def test_an_environment_matches_the_reference_case(row: Any, tmp_path: Path) -> None:
    put(tmp_path, row["input"]["files"])
    result = load_env(tmp_path, row["input"]["mode"], row["input"]["system_env"])
    assert list(result.files) == row["output"]["file_order_highest_first"]
    assert list(result.loaded_files) == row["output"]["files_loaded"]
    assert list(result.loaded) == row["output"]["loaded_keys"]
    assert result.values == row["output"]["env"]


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (".env", "NODE_OPTIONS=--inspect\nA=1\n", ".env:1: NODE_OPTIONS"),
        (".env.local", "A=1\nLD_PRELOAD=/x.so", ".env.local:2: LD_PRELOAD"),
        (".env", "VENDOR_NO_DOTENV=1", "VENDOR_NO_DOTENV"),
        (".env", "ANDROID_HOME=/opt/sdk", "ends in .local"),
    ],
)
def test_a_variable_that_hijacks_tools_is_refused_with_its_position(
    file: str, text: str, problem: str, tmp_path: Path
) -> None:
    put(tmp_path, {file: text})
    with pytest.raises(
        ConfigError,
        match=r"must not be set in an environment file|specific to one machine",
    ) as caught:
        load_env(tmp_path, environ={})
    assert problem in str(caught.value)
    assert "/x" not in str(caught.value)


@pytest.mark.parametrize("text", ["A=1\nB=x\0y", "A=1\nB\0=x"])
def test_a_zero_byte_is_refused_with_its_position(text: str, tmp_path: Path) -> None:
    put(tmp_path, {".env": text})
    with pytest.raises(ProjectError, match=r"\.env:2: B\S*: contains a zero byte"):
        load_env(tmp_path, environ={})


def test_a_refused_variable_can_be_allowed_in_the_shell_but_not_a_file_switch(
    tmp_path: Path,
) -> None:
    put(tmp_path, {".env": "NODE_OPTIONS=-x\nANDROID_HOME=/a"})
    allowed = {
        "VENDOR_UNSAFE_DOTENV_KEYS": "NODE_OPTIONS, ANDROID_HOME,VENDOR_NO_DOTENV"
    }
    assert load_env(tmp_path, environ=allowed).loaded == (
        "ANDROID_HOME",
        "NODE_OPTIONS",
    )
    put(tmp_path, {".env": "VENDOR_NO_DOTENV=1"})
    with pytest.raises(ConfigError):
        load_env(tmp_path, environ=allowed)


def test_the_files_can_be_turned_off(tmp_path: Path) -> None:
    put(tmp_path, {".env": "A=1"})
    result = load_env(tmp_path, environ={"VENDOR_NO_DOTENV": "1"})
    assert (result.files, result.loaded, result.values) == (
        (),
        (),
        {"VENDOR_NO_DOTENV": "1"},
    )


def test_another_vendor_has_its_own_variables(tmp_path: Path) -> None:
    put(tmp_path, {".env": "A=1"})
    assert (
        load_env(tmp_path, environ={"ACME_NO_DOTENV": "1"}, vendor="acme").files == ()
    )
    assert load_env(
        tmp_path, environ={"VENDOR_NO_DOTENV": "1"}, vendor="acme"
    ).loaded == ("A",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A=1 # comment\nB=#c\nC='a # b'", {"A": "1", "B": "", "C": "a # b"}),
        (
            "A='a\\nb'\nB=\"a\\nb\"\nC=`a\\nb`",
            {"A": "a\\nb", "B": "a\nb", "C": "a\\nb"},
        ),
        ('A="x\nB=2', {"A": '"x', "B": "2"}),
        ("export A=1\n export  B = 2", {"A": "1", "B": "2"}),
        ("A='x\ny'z\nB=1", {"A": "x\ny", "B": "1"}),
        ("A=x=y\nno assignment\n=x\nB=", {"A": "x=y", "B": ""}),
        ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=   \nB=2", {"A": "", "B": "2"}),
        ("A=1\nA=2", {"A": "2"}),
    ],
)
def test_quotes_comments_and_line_ends(
    text: str, values: dict[str, str], tmp_path: Path
) -> None:
    put(tmp_path, {".env": text})
    assert load_env(tmp_path, environ={}).values == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A=x\nB=$A/y\nC=${A}z\nD='$A'", {"A": "x", "B": "x/y", "C": "xz", "D": "x"}),
        (r"A=\$B" + "\nB=1", {"A": "$B", "B": "1"}),
        ("A=$(pwd)\nB=$NONE-", {"A": "$(pwd)", "B": ""}),
        ("A=$A", {"A": ""}),
        ("A=${B}\nB=late", {"A": "late", "B": "late"}),
        ("A=${X:-${Y:-${Z:-deep}}}", {"A": "deep"}),
    ],
)
def test_references_are_expanded(
    text: str, values: dict[str, str], tmp_path: Path
) -> None:
    put(tmp_path, {".env": text})
    result = load_env(tmp_path, environ={})
    if "B=$NONE-" in text:
        assert result.values["A"] == values["A"]
    else:
        assert result.values == values


@pytest.mark.parametrize(
    ("own", "value"),
    [("", "file/p"), ("a$B", "a$B/p"), ("$A", "$A/p"), ("${B", "${B/p")],
)
def test_a_variable_of_the_process_is_taken_as_it_is(
    own: str, value: str, tmp_path: Path
) -> None:
    put(tmp_path, {".env": "A=file\nB=other\nC=${A}/p"})
    assert load_env(tmp_path, environ={"A": own}).values == {
        "A": own,
        "B": "other",
        "C": value,
    }


@pytest.mark.parametrize(
    "text", ["A=$B\nB=$A", "A=$B\nB=$C\nC=${A}", "A=${X:-$B}\nB=$A"]
)
def test_circular_references_are_an_error_that_names_them(
    text: str, tmp_path: Path
) -> None:
    put(tmp_path, {".env": text})
    with pytest.raises(
        ConfigError, match=r"A -> .*A: circular reference between variables"
    ):
        load_env(tmp_path, environ={})


def test_a_bad_file_is_one_error_with_the_position(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=1\nB=\xff\n")
    with pytest.raises(ConfigError, match=r"\.env:2:3: is not UTF-8"):
        load_env(tmp_path, environ={})
    (tmp_path / ".env").write_bytes(b"A" * 50_000_000)
    with pytest.raises(ConfigError, match=r"\.env: is larger than 8 MB"):
        load_env(tmp_path, environ={})


def test_a_mode_cannot_escape_the_directory(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"mode '\.\./x' must be a part of a file name"
    ):
        load_env(tmp_path, "../x", {})


def test_values_do_not_reach_a_repr(tmp_path: Path) -> None:
    put(tmp_path, {".env": "TOKEN=hunter2hunter2"})
    assert "hunter2" not in repr(load_env(tmp_path, environ={}))


def test_the_process_environment_is_the_default_and_stays_unchanged(
    tmp_path: Path,
) -> None:
    put(tmp_path, {".env": "MADE_UP_FOR_THIS_TEST=1"})
    assert load_env(tmp_path).values["MADE_UP_FOR_THIS_TEST"] == "1"
    assert "MADE_UP_FOR_THIS_TEST" not in os.environ
