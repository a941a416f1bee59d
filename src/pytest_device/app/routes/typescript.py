"""Generator of the TypeScript declaration for typed routes."""

import json
import re
from collections.abc import Iterable

from pytest_device.app.routes.names import Parameter, unique
from pytest_device.app.vendor import Vendor

_TAIL = "${`?${string}` | `#${string}` | ''}"


def declaration(routes: "Iterable[tuple[str, tuple[Parameter, ...]]]", vendor: str) -> str:
    """Return the declaration: static routes as strings, dynamic routes with exactly their parameters."""
    known = tuple(routes)
    router, namespace = Vendor(vendor).package("router"), f"{vendor.capitalize()}Router"
    inputs = _union(_object(name, found, "string | number") for name, found in known)
    outputs = _union(_object(name, found, "string") for name, found in known)
    texts = (f"`{_literal(name)}{_TAIL}`" for name, found in known if not found)
    return f"""\
/* eslint-disable */
export * from '{router}';

declare module '{router}' {{
  export namespace {namespace} {{
    export interface __routes<T extends string | object = string> {{
      hrefInputParams: {inputs};
      hrefOutputParams: {outputs};
      href: {_union((*texts, inputs)) if known else inputs};
    }}
  }}
}}
"""


def _union(types: Iterable[str]) -> str:
    return " | ".join(types) or "never"


def _object(name: str, parameters: tuple[Parameter, ...], value: str) -> str:
    if not parameters:
        return f"{{ pathname: `{_literal(name)}`; params?: Record<string, never> }}"
    several = f"({value})[]" if " " in value else f"{value}[]"
    fields = " ".join(f"{_key(one.name)}: {several if one.catch_all else value};" for one in unique(parameters))
    return f"{{ pathname: `{_literal(name)}`; params: {{ {fields} }} }}"


def _literal(name: str) -> str:
    return name.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_$][\w$]*", name, re.ASCII) else json.dumps(name)
