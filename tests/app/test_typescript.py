"""The TypeScript declaration, as enforced by the compiler."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.service.programs.toolchain import Node
from tests.app.rows import put, rows
from tests.app.test_routes import DEVIATIONS, routes_of_row

HERE: Final = Path(__file__).with_name("typescript")
ROUTER: Final = """\
export namespace VendorRouter { export interface __routes<T extends string | object = string> {} }
export type Href = VendorRouter.__routes extends { href: infer H } ? H : never;
"""
OPTIONS: Final = {
    "strict": True,
    "noEmit": True,
    "skipDefaultLibCheck": True,
    "types": [],
    "lib": ["es2022"],
}
"""The compiler checks the declaration, but not its own library: that takes half of its time."""
CONFIG: Final = {"compilerOptions": OPTIONS}
ROWS: Final = [
    row.values[0] for row in rows("typed_routes") if "op" not in row.values[0]
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory, node: Node) -> list[str]:
    """The compiler's output for a project per row: starting it for each row takes most of the time."""
    directory = tmp_path_factory.mktemp("typescript")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, directory)
    install = [*node.npm, "ci", "--ignore-scripts"]
    subprocess.run(install, cwd=directory, check=True)
    for row in ROWS:
        put(directory / row["name"], _project(row))
    compiler = directory / "node_modules/typescript/bin/tsc"
    command = [
        node.executable,
        compiler,
        "--build",
        "--verbose",
        *(row["name"] for row in ROWS),
    ]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in ROWS])
def test_the_compiler_accepts_right_links_and_refuses_wrong_ones(
    row: Any, compiled: list[str]
) -> None:
    assert any(
        line.endswith(f"/{row['name']}/tsconfig.json'...") for line in compiled
    ), compiled
    links = f"{row['name']}/links.ts("
    errors = [
        line
        for line in compiled
        if line.startswith(f"{row['name']}/") and "error TS" in line
    ]
    refused = {
        int(line.removeprefix(links).partition(",")[0]) - 2
        for line in errors
        if line.startswith(links)
    }
    assert [line for line in errors if not line.startswith(links)] == []
    assert refused == {
        index
        for index, one in enumerate(row["output"]["href_verdicts"])
        if not one["accepted"] or one["href"] in DEVIATIONS
    }, compiled


def _project(row: Any) -> dict[str, object]:
    links = "".join(
        f"export const a{index}: Href = {one['href']};\n"
        for index, one in enumerate(row["output"]["href_verdicts"])
    )
    return {
        "node_modules/vendor-router/package.json": {"types": "index.d.ts"},
        "node_modules/vendor-router/index.d.ts": ROUTER,
        "router.d.ts": routes_of_row(row).typescript_declaration(),
        "links.ts": f"import type {{ Href }} from 'vendor-router';\n{links}",
        "tsconfig.json": CONFIG,
    }
