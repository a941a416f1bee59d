"""The TypeScript declaration, as enforced by the compiler."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.app.rows import put, rows
from tests.app.test_routes import DEVIATIONS, routes_of_row

HERE: Final = Path(__file__).with_name("typescript")
ROUTER: Final = """\
export namespace VendorRouter { export interface __routes<T extends string | object = string> {} }
export type Href = VendorRouter.__routes extends { href: infer H } ? H : never;
"""
OPTIONS: Final = {"strict": True, "noEmit": True, "skipDefaultLibCheck": True, "types": [], "lib": ["es2022"]}
"""The compiler checks the declaration, but not its own library: that takes half of its time."""
CONFIG: Final = {"compilerOptions": OPTIONS}


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("typescript")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, directory)
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory, check=True)
    return directory / "node_modules/typescript/bin/tsc"


@pytest.mark.parametrize("row", [row for row in rows("typed_routes") if "op" not in row.values[0]])
def test_the_compiler_accepts_right_links_and_refuses_wrong_ones(row: Any, compiler: Path, tmp_path: Path) -> None:
    verdicts = row["output"]["href_verdicts"]
    links = "".join(f"export const a{index}: Href = {one['href']};\n" for index, one in enumerate(verdicts))
    put(tmp_path, {
        "node_modules/vendor-router/package.json": {"types": "index.d.ts"},
        "node_modules/vendor-router/index.d.ts": ROUTER,
        "router.d.ts": routes_of_row(row).typescript_declaration(),
        "links.ts": f"import type {{ Href }} from 'vendor-router';\n{links}",
        "tsconfig.json": CONFIG,
    })  # fmt: skip
    done = subprocess.run(["node", str(compiler)], cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if "error TS" in line]
    refused = {int(line.partition("(")[2].partition(",")[0]) - 2 for line in errors if line.startswith("links.ts")}
    assert [line for line in errors if not line.startswith("links.ts")] == []
    assert refused == {
        index for index, one in enumerate(verdicts) if not one["accepted"] or one["href"] in DEVIATIONS
    }, done.stdout
