"""How the bundler resolves names, packages and reads of the environment."""

import time
from typing import Any

import pytest

from pytest_device.app import css_module_name, debug_id, inlined_public
from pytest_device.app.bundler import CssModule
from tests.app.rows import rows

ENV = {"VENDOR_PUBLIC_API": "https://api.example", "SECRET": "s"}


@pytest.mark.parametrize("row", rows("bundler", "debug_id"))
def test_a_debug_id_matches_the_reference_case(row: Any) -> None:
    assert list(map(debug_id, row["input"]["strings"])) == row["output"]["uuids"]
    assert debug_id(b"x" * 10_000) == "b567fcb6-8d85-4522-b123-ab87e255872e"


@pytest.mark.parametrize("row", rows("bundler", "is_css_module"))
def test_css_modules_are_recognized_as_in_the_reference_case(row: Any) -> None:
    assert [css_module_name(name) is not None for name in row["input"]["files"]] == row[
        "output"
    ]["is_module"]


def test_a_css_module_has_a_platform_only_after_module() -> None:
    assert css_module_name("src/a.module.ios.css") == CssModule("a", "ios")
    assert css_module_name("src/a.ios.module.css") == CssModule("a.ios", None)


@pytest.mark.parametrize("row", rows("bundler", "inline_env"))
def test_a_read_is_inlined_as_in_the_reference_case(row: Any) -> None:
    given, caller = row["input"], row["input"]["caller"]
    reads = inlined_public(
        given["code"],
        given["env"],
        server=caller["isServer"],
        node_module=caller.get("isNodeModule", False),
    )
    [read] = reads
    # The document: an inlined variable cannot be read with brackets.
    if "[" in given["code"]:
        assert read.kind == "kept"
    elif "process.env" in row["output"]["code"]:
        assert (read.kind, read.value) == ("kept", None)
    elif row["output"]["code"].endswith("=undefined;"):
        assert (read.kind, read.value) == ("undefined", None)
    else:
        assert (read.kind, f'"{read.value}"') == (
            "inlined",
            row["output"]["code"].partition("=")[2].rstrip(";"),
        )


@pytest.mark.parametrize("row", rows("bundler", "inlined_values"))
def test_the_values_in_a_bundle_are_those_of_the_reference_case(row: Any) -> None:
    reads = inlined_public(row["input"]["code"], row["input"]["env"])
    values = [read.value for read in reads if read.kind == "inlined"]
    assert values == row["output"]["values"]


@pytest.mark.parametrize("row", rows("bundler", "inspect_export"))
def test_inlining_can_be_turned_off_except_for_the_base_url(row: Any) -> None:
    reads = inlined_public(row["input"]["source"], ENV | row["input"]["env"])
    assert [(one.name, one.kind, one.value) for one in reads] == [
        ("VENDOR_PUBLIC_API", "kept", None), ("SECRET", "kept", None), ("VENDOR_BASE_URL", "inlined", ""),
    ]  # fmt: skip


API = "process.env.VENDOR_PUBLIC_API"


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (f"// {API}\n/* {API} */ `{API}` + '{API}' + \"{API}\"", []),
        (f"`a ${{ {API} + `${{ {API} }}` }} {API}`", ["inlined", "inlined"]),
        (f"x = {API}?.length ?? {API}!;", ["inlined", "inlined"]),
        (
            "process.env?.VENDOR_PUBLIC_API; process?.env.VENDOR_PUBLIC_API",
            ["kept", "kept"],
        ),
        (f"{API} = 'x'; {API} === 'x'; {API}++", ["kept", "inlined", "kept"]),
        *(
            (f"{API} {sign} x", ["kept"])
            for sign in ("+=", "**=", "||=", "??=", ">>=", ">>>=", "&=", "/=")
        ),
        *(
            (f"{API} {sign} x", ["inlined"])
            for sign in ("==", "===", "!=", ">=", "<=", "=>", "+ -", "/", "??", "||")
        ),
        (
            "process.env['VENDOR_PUBLIC_API']; process.env[name]; f(process.env)",
            ["kept"] * 3,
        ),
        (
            "const {VENDOR_PUBLIC_API, SECRET: s = 1, ...rest} = process.env",
            ["kept"] * 3,
        ),
        (
            "const {env} = process; const {argv, env: e} = process; process['env'].VENDOR_PUBLIC_API",
            ["kept"] * 3,
        ),
        (
            "const {argv} = process; const {env} = process.other; process[env]; const {env} = other",
            [],
        ),
        (f"globalThis.{API}; myprocess.env.X; process.environment", []),
        (
            "process\n  .env\n  .VENDOR_PUBLIC_API; process/* c */.env.VENDOR_PUBLIC_API",
            ["inlined", "inlined"],
        ),
        (f"a = b / c / {API}; d = /{API}['\"`]/g.test(e); return /'/", ["inlined"]),
        (
            f"return <A b='{API}' c={{{API}}}>Don't {API} {{{API}}}<br/> it's</A> + {API}",
            ["inlined"] * 3,
        ),
        (
            f"const f = <T,>(x: T) => {API}; const g = <T>(x: T): Array<T> => [{API}]",
            ["inlined", "inlined"],
        ),
        (f"if (a < b && c > d) {{ {API} }}", ["inlined"]),
        (f"() => <>{API}{{() => <b>{API}</b>}}</>; {API}", ["inlined"]),
        (f"const a: Record<string, string> = {{ b: {API} }} as const;", ["inlined"]),
        (
            f"const s = {API} satisfies string; type X = typeof {API}",
            ["inlined"],
        ),
        (
            f"const x = <Type>{API}; const y = <T>(z: T) => {API}",
            ["inlined", "inlined"],
        ),
    ],
)
def test_only_code_is_searched_for_reads(source: str, kinds: list[str]) -> None:
    assert [one.kind for one in inlined_public(source, ENV)] == kinds


def test_a_read_has_a_position_and_a_name() -> None:
    [first, second] = inlined_public("\n  x(process.env.A,\n process.env['B'])", {})
    assert (first.expression, first.name, first.line, first.column) == (
        "process.env.A",
        "A",
        2,
        5,
    )
    assert (second.expression, second.name, second.line, second.column) == (
        "process.env['B']",
        "B",
        3,
        2,
    )
    [read] = inlined_public("const é = '日本';  process.env['Ü']", {})
    assert (read.expression, read.name, read.column) == ("process.env['Ü']", "Ü", 18)
    [index, *_] = inlined_public("process.env[names[0] + 'X'].length; process.env[", {})
    assert (index.expression, index.name) == ("process.env[names[0] + 'X']", "")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("const {A, B: b, C = 1, 'D': d, [e]: f, ...g} = process.env", [*"ABCD", "", ""]),
        ("const {A} = process.env as Env; (process.env as Env).B; process.env!.C", [*"ABC"]),
        ("({A} = process?.env); f(({B} = process.env) => {}); 'env' in process", [*"AB"]),
        ("const {/* none */} = process.env; const env = process.env", ["", ""]),
    ],
)  # fmt: skip
def test_a_read_names_what_it_reads(source: str, names: list[str]) -> None:
    assert [read.name for read in inlined_public(source, {})] == names


@pytest.mark.parametrize("mark", [".", "?.", "["])
def test_a_read_may_end_with_the_file(mark: str) -> None:
    [read] = inlined_public(f"process.env{mark}", {})

    assert (read.name, read.kind) == ("", "kept")


def test_some_reads_are_never_inlined() -> None:
    def kind(**where: Any) -> str:
        return inlined_public(API, ENV, **where)[0].kind

    assert [kind(), kind(server=True), kind(node_module=True), kind(mode="development"), kind(mode="test")] == [
        "inlined", "kept", "kept", "kept", "undefined",
    ]  # fmt: skip
    base = inlined_public("process.env.VENDOR_BASE_URL", ENV, base_url="/b")[0]
    assert (base.kind, base.value) == ("inlined", "/b")
    assert (
        inlined_public("process.env.VENDOR_BASE_URL", ENV, mode="test")[0].kind
        == "undefined"
    )
    assert (
        inlined_public(
            "process.env.ACME_PUBLIC_X", {"ACME_PUBLIC_X": "1"}, vendor="acme"
        )[0].value
        == "1"
    )


@pytest.mark.parametrize(
    "source",
    [
        f"var a={API};x(`${{b}}`,/[/]/,'\\'');" * 18_000,  # 1 MB
        "process" + "`${" * 70_000,
        "(" * 10_000 + API + " as a)" * 10_000,
    ],
)
def test_a_minified_line_is_parsed_in_bounded_time(source: str) -> None:
    started = time.perf_counter()
    inlined_public(source, ENV)
    assert time.perf_counter() - started < 40
