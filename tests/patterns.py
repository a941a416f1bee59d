"""The regular expressions of the package, found in its source, and the texts that take each of them longest."""

# ruff: noqa: SLF001  # tables of patterns are private

import ast
import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest_device
from pytest_device.app import sections
from pytest_device.app.sections import Form
from pytest_device.cli.doctor import service as doctor
from pytest_device.controllers.appium import refusal
from pytest_device.service import rules
from pytest_device.service.devices import browser
from pytest_device.service.programs import cache
from pytest_device.spec import VENDOR_FIELDS

ROOT: Final = Path(pytest_device.__file__).parent
USES: Final = frozenset(
    {"findall", "finditer", "fullmatch", "match", "search", "split", "sub"}
)
Use = tuple[re.Pattern[Any] | None, str]
"""A pattern, unless a function gets it as an argument, and the method by which it is applied."""


HELD: Final = {"redact._PATTERNS": "sub"}
"""The methods of constants that are used as the item of another one."""


def used_patterns() -> dict[str, list[Use]]:
    """Return all patterns by where they stand."""
    trees = {_module_of(path): ast.parse(path.read_text()) for path in _sources()}
    methods = _methods_of_constants(trees)

    found: dict[str, list[Use]] = {}
    for module, tree in trees.items():
        for scope, call in _calls(tree):
            name = ".".join((module, *scope)).removeprefix("pytest_device.")
            uses = found.setdefault(name, [])
            pattern = _pattern(importlib.import_module(module), call)
            assert isinstance(call.func, ast.Attribute)
            named = methods.get(f"{module}.{scope[-1]}", {HELD.get(name, "search")})
            applied = named if call.func.attr == "compile" else {call.func.attr}
            uses += [(pattern, method) for method in sorted(applied)]

    return found


def _sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _calls(
    node: ast.AST, scope: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ast.Call]]:
    """Yield the calls of `re`, with the names of the functions, or of the constant, that they are in."""
    for child in ast.iter_child_nodes(node):
        match child:
            case (
                ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name)
            ):
                yield from _calls(child, (*scope, name))
            case ast.AnnAssign(ast.Name(name)) | ast.Assign([ast.Name(name)]):
                yield from _calls(child, scope or (name,))
            case ast.Call(ast.Attribute(ast.Name("re"), attr)) if attr in {
                *USES,
                "compile",
            }:
                yield scope, child
                yield from _calls(child, scope)
            case _:
                yield from _calls(child, scope)


def _methods_of_constants(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the methods that are called of constants, also of imported ones."""
    methods: dict[str, set[str]] = {}
    for module, tree in trees.items():
        origins = {
            alias.asname or alias.name: node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(ast.Name(name), attr) if attr in USES:
                    origin = origins.get(name) or module
                    methods.setdefault(f"{origin}.{name}", set()).add(attr)
                case _:
                    pass

    return methods


def _pattern(module: ModuleType, call: ast.Call) -> re.Pattern[Any] | None:
    flags = 0
    for argument in (*call.args[1:], *(keyword.value for keyword in call.keywords)):
        text = ast.unparse(argument)
        if text.startswith("re."):
            flags |= eval(text, vars(module))

    try:
        pattern = eval(ast.unparse(call.args[0]), vars(module))
    except NameError:  # an argument of the function
        return None
    return re.compile(pattern, flags)


Worst = tuple[str, str, str]
"""What a text begins with, what is repeated in it, and what it ends with."""
WORST: Final[Mapping[str, Sequence[Worst]]] = {
    "app.bundle._DEBUG_ID": [('"debugId"', "//# debugId=00000000-", "\x00")],
    "app.bundler._MODULE": [("z.module", ".a", "\x00")],
    "app.checks.sources._IN_NODE": [("", ".setup ", "")],
    "app.checks.sources._SASS_IMPORT": [(" @import", "\n", "")],
    "app.checks.sources._SCRIPT": [(".", ".c", "")],
    "app.checks.sources._style": [(".web", ".web", "\x00")],
    "app.document.Lines._starts": [("\n", '\n"', "\x00")],
    "app.document._TOKEN": [("", '."', "")],
    "app.document._explained": [
        ("", ":1 ", ""),
        (":1 ", "column ", ""),
        (":", "1", ""),
    ],
    "app.dotenv._REFERENCE": [("", "$a:-${x}", ""), ("$a:-${", "x", "")],
    "app.dotenv._name": [("", ".", "")],
    "app.dotenv._unclosed": [("${", "}", "\x00")],
    "app.inlining._NOT_ASCII": [("", "é", "")],
    "app.inlining._OTHER_MARK": [("", "a", "")],
    "app.link._NOT_IN_SCHEMES": [("z", " ", "\x00")],
    "app.link._OTHER_SCHEME": [("", "  ", "")],
    "app.package._DROPPED": [("", '"\\', "\x00")],
    "app.routes.declarations._key": [("", "Aa", "\x00")],
    "app.routes.href._split": [("", ".", "")],
    "app.routes.href._unknown": [("A", "..", "\x00")],
    "app.routes.names._EXTENSION": [(".jsx", ".js ", "\x00")],
    "app.routes.phone._ENCODED_DOT": [("", '%2e"', "")],
    "app.routes.phone._MALFORMED": [("", "%00", "")],
    "app.routes.phone._OTHER_SCHEME": [("", ".", "")],
    "app.runtime._VERSION": [("", "A", "")],
    "app.secret_patterns.SECRETS": [
        ("-----BEGIN ", "A ", ""),
        ("api", 'client_secret" :.', "\x00"),
    ],
    "app.secret_patterns._NEVER_SHIPS": [("", "private_ ", "")],
    "app.sections.sdk_major": [("", " ", "")],
    "app.vendor._WORD": [("aa", "a", "\x00")],
    "auth.config._python_name": [("", "Aa", "")],
    "auth.provider.authorize._CHALLENGE": [("", "A", "")],
    "auth.provider.model._ABSOLUTE_URI": [("", "AA:", "")],
    "auth.provider.model._SCOPE": [("!", "!", "\x00")],
    "auth.redirect._IP_ADDRESS": [("0", "0.0.0. ", "")],
    "auth.redirect._SCHEME": [("aa", "-.", "\x00")],
    "cli.masked._ANNOTATION": [("::error", "warning", "\x00")],
    "controllers.appium.options._URL": [("", "aa.", "")],
    "controllers.appium.refusal.ADVERTISEMENT": [
        ("", "; For documentation on this error, please visit: b.", "")
    ],
    "controllers.appium.refusal._CRASHED_IN_TEST": [("page crash", "a.", "\x00")],
    "controllers.appium.refusal._NOT_INSTALLED": [("", "'", "\x00")],
    "controllers.appium.refusal._OWN_APPS": [("WebDriverAgent", "-", "\x00")],
    "controllers.appium.refusal._SERVER_GONE": [
        ("could not proxy command to", "ould not proxy command toa", "")
    ],
    "controllers.appium.refusal._WRONG_OPTIONS": [
        ("capabilities object", "capabilities object were.", "")
    ],
    "controllers.appium.refusal.redacted": [("//a", "//a@", "")],
    "controllers.environment.session_name": [("", "z\\", "\x00")],
    "escape.COLOR": [("", "\x1b[0m", "")],
    "escape._COMMAND": [(" ##teamcity", '##["', "")],
    "escape._UNSAFE": [("", "\x00", "")],
    "local._STYLESHEET": [('<link rel="stylesheet"z', '<link rel="stylesheet"', "")],
    "nodejs._VERSION": [("1.", "1", "\x00")],
    "notifications.shade._escaped": [("", ".\\", "\x00")],
    "notifications.tokens.PushTokenRequest.url": [("", "https://a", "")],
    "platforms.places._VERSION": [("1.1", "1.1\\", "\x00")],
    "platforms.shells._PLAIN": [("", "/a", "\x00")],
    "plugin._ARTIFACTS": [("-00000000-retry-1", "0", "\x00")],
    "plugin.output.artifacts.file_name": [("z", "1 ", "")],
    "plugin.provider.drivers._note_cloud_scripts.noted": [("", ".", "\x00")],
    "plugin.quarantine._DATE": [("", ':"', "")],
    "redact._BREAK": [("\r", "E \\", ""), ("", "\n ", ""), ("", "\\", "")],
    "redact._CAMEL_CASE": [("", "Aa", "")],
    "redact._DOTS": [("", "…", "")],
    "redact._KEY_BEGINS": [("-----BEGIN A ", ". ", "\x00")],
    "redact._KEY_BODY": [("", "E ", ""), ("", "+", ""), ("", "\\", "")],
    "redact._NOISE": [("", "'\"", ""), ("", "\n ", ""), ("", "\\", "")],
    "redact._NOISE_AND_BLANKS": [("", " ", ""), ("", "\n ", ""), ("", "\\", "")],
    "redact._NO_BASE64": [("", "z\\", "")],
    "redact._NO_LETTERS": [("", "z\\", "\x00")],
    "redact._OTHER_NAME": [("_id", "_typea", "\x00")],
    "redact._PATTERNS": [
        ("authorization: bearer", " ", ""),
        ("", "://a@", ""),
        ("?", "token", ""),
        ("", "&token", ""),
    ],
    "redact._PERCENT": [("", "%00", "")],
    "redact._SECRET_NAME": [("", "passw", "\x00")],
    "redact._TOKEN": [("", "1a", "\x00")],
    "report.blob.write_bars": [("", "1 ", "")],
    "report.foreign._LINES": [("a", "a.", "/")],
    "report.foreign._RESOURCE": [("resources/a", "a.", "/")],
    "report.foreign._SEPARATORS": [("", "a/", "")],
    "report.directory._PARTS": [("-1-of-1", "1", "\x00")],
    "report.directory._is_in_use": [("-device-1", "1", "\x00")],
    "report.directory._safe": [("z", "a\\", "")],
    "report.lines._PAGE": [(" (session page: https://", "1", "")],
    "report.lines.normalize": [("00000000-", "1.1 ", "")],
    "secret_registry._is_secret": [("a tokens", "\n", "")],
    "service.apps.download._file_name": [("", " a", "\x00")],
    "service.devices.availability._other_majors": [
        ("", " ", ""),
        ("", "||", ""),
        ("|| ", "^", ""),
    ],
    "service.devices.browsers._VERSION": [("", "1", ""), ("", "1.", "")],
    "service.devices.emulator.Emulator._front": [
        ("ResumedActivity: ", "ResumedActivity: ActivityRecord{", "\x00")
    ],
    "service.devices.emulator.Emulator._size": [("", '\n"', "\x00")],
    "service.devices.emulator.Emulator._start": [("", "\n", "\x00")],
    "service.devices.profiles.plain": [("", "1 ", "")],
    "service.devices.relay._EDGE": [("", ".", "")],
    "service.devices.simulator.Simulator._running": [("1\tz", "1\tz", "")],
    "service.devices.web_push._PARAMETER": [
        ("t", " ", ""),
        ("", "t=", ""),
        ("", "t ", ""),
    ],
    "service.devices.web_push._TOPIC": [("", "/a", "")],
    "service.devices.web_push._VAPID": [("", 'vapid z"', "")],
    "service.gateway._UTF_8": [("z; charset", "\na", "\x00")],
    "service.page.paths._ABSOLUTE": [("/", '~/"', "")],
    "service.page.paths._HOME": [("file://", "\n ", "")],
    "service.page.paths._SYSTEM": [("~/a", '~/"', "\x00")],
    "service.programs.cache._CREDENTIAL": [("password", "_auth", "\x00")],
    "service.programs.output_tail._BODY": [("[HTTP] --> ", "a", "\x00")],
    "service.rules._is_web_url": [("https", 'https"', "")],
    "service.rules.is_uuid": [("00000000-0", "a", "")],
    "sessions.client._QUOTED_REPLY": [(": bytearray(", " ", "\x00")],
    "sessions.ledger._NAME": [("", "A", "")],
    "sessions.partial.MESSAGE": [("", ". ", "")],
    "sessions.partial.SPELLING": [("", "urn:uuid:{00000000-0000-0000-0000 ", "\x00")],
    "sessions.partial._LOCATION": [
        (
            "/v2/device-run-sessions/urn:uuid:{00000000-0000-0000-0",
            "/v2/device-run-sessions/urn:uuid:{00000000-0000-0000-",
            "",
        )
    ],
    "sessions.partial._NAMED_ID": [
        ('"id" : "urn:uuid:{00000000', '"id" : "urn:uuid:', "")
    ],
    "sessions.partial._URL": [("https://", "https\\", "\x00")],
    "sessions.remote_config._CREDENTIAL": [("access", "\\.", "\x00")],
    "sessions.replies._DETAILS": [("", ".\\", "\x00")],
    "sessions.replies._MEMBER": [('" ', '""', "\x00")],
    "sessions.replies._raw": [("", "<style", ""), ("", "<", ""), ("", "<a ", "")],
    "sessions.request._URL": [("", "\n\\", "")],
    "sessions.request._UUID": [("", "00000000-", "")],
    "sessions.retry_policy._SECONDS": [("", "1", "\x00")],
    "sessions.runs.OwnRun.join": [("z", '\n"', "")],
    "trace.agent_device._KEY": [("", "\n ", "\x00")],
    "trace.agent_device._WORD": [("", 'Aa"', "")],
    "trace.appium._READS": [("", "status.", "")],
    "trace.appium._WORDS": [("", "_", "")],
    "trace.masking._ABSOLUTE": [("/var", ":a", "\x00")],
    "trace.masking._WINDOWS": [("a", ".\\", "")],
    "trace.screen_parsers._ANDROID_BOUNDS": [("[-1,-1][-1,-1]", "\n ", "\x00")],
    "trace.screen_parsers._DECLARATION": [("", ".", "")],
    "trace.screen_parsers._FLAGS": [("[a]", "[a]\\", "")],
    "trace.screen_parsers._FRAME": [("-1.1, ", "1", "")],
    "trace.screen_parsers._HTML": [(" ", "\n ", "\x00")],
    "trace.screen_parsers._QUOTED": [('"\\z', '"', "")],
    "trace.screen_parsers._quoted_texts": [("-", "1\\", ""), ("\\z", "\\z.", "")],
    "trace.screen_parsers._with_content": [("a", ' "', "\x00")],
    "trace.tree._ATTRIBUTE": [(" ", "\\", "\x00"), ('a="', " ", ""), ("", 'a="', "")],
    "trace.tree._INPUT": [("", "\n.", "\x00")],
    "trace.tree._SECURE": [("", '\\"', "")],
    "trace.values._PLACEHOLDER": [("{", "1", "")],
    "updates.export._MD5": [("", "00000000000000000000000000000000", "")],
}
"""The texts that take each pattern longest; of any length, but for the bounds below."""

OWN: Final[Mapping[str, str]] = {
    "app.checks.packages._excluded": "the patterns of the project itself",
    "app.checks.packages._HYPHEN": "the package.json of the project",
    "app.checks.packages._VERSION": "the package.json of the project",
    "local._SCRIPT": "the page of the local service",
    "trace.nearest._QUOTED": "the locator of a test",
    "trace.nearest._sought": "the locator of a test",
    "trace.masking.Masker.learn": "passwords of up to five characters, each as it is",
}
"""Patterns that meet texts of this package or of the suite only, not those of others."""

TABLES: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "app.sections.Form.fits": lambda: [
        form.pattern for form in vars(sections).values() if isinstance(form, Form)
    ],
    "app.vendor.VendorProfile.__post_init__": lambda: [
        rule.pattern for rule in VENDOR_FIELDS.values()
    ],
    "cli.doctor.service._fix_of_network": lambda: [
        pattern for pattern, _ in doctor._NETWORK_FIXES
    ],
    "controllers.appium.refusal._fix_of_sign": lambda: [
        pattern for pattern, _ in refusal._SIGNS
    ],
    "parsers.vendor_names": lambda: [rule.pattern for rule in VENDOR_FIELDS.values()],
    "service.programs.cache._fix_of": lambda: [pattern for pattern, _ in cache._FIXES],
    "service.programs.output_tail.OutputTail.__init__": lambda: [browser._NOISE],
    "service.rules._matching": lambda: [rules.UUID, rules.MAJOR_VERSION, rules.URL],
}
"""The patterns of places that get them as an argument, by the name of the place."""
ANY: Final[Sequence[Worst]] = [
    ("", part, end)
    for part in ("a", "1", " ", "a-", "a.1/", "'a")
    for end in ("", "\n")
]
"""Texts for these, which are all short."""
