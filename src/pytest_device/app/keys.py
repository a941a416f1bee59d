"""The keys of the app config: each with its type, values, default, limits and the references that have it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from pytest_device.app.document import Json, at
from pytest_device.app.runtime import is_valid_scheme

OLDEST_SDK: Final = 54
NEWEST_SDK: Final = 58
"""The SDK versions whose references the document knows."""

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int,),
    "array": (list,),
    "object": (dict,),
}


class Form(NamedTuple):
    """The form of a text: its pattern, and what to say of it."""

    pattern: str
    rule: str


@dataclass(frozen=True, slots=True)
class Key:
    """One key: ``first`` is the first reference that has it, ``removed`` the SDK version that removed it."""

    name: str
    kinds: tuple[str, ...] = ("string",)
    values: tuple[str, ...] = ()
    default: Json = None
    form: Form | None = None
    low: float | None = None
    high: float | None = None
    first: int = OLDEST_SDK
    removed: int | None = None
    older: bool = False
    """Whether the older reference alone has it."""
    deprecated: str = ""
    generated: bool = False

    @property
    def trail(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))

    def problem(self, value: Json) -> str | None:
        """Return the rule that a value breaks."""
        if self.kinds and not any(_is(value, kind) for kind in self.kinds):
            return f"must be of type {' or '.join(self.kinds)}"
        for one in value if isinstance(value, list) else [value]:
            if problem := self._limit(one):
                return problem
        return None

    def _limit(self, value: Json) -> str | None:
        if self.values and value not in self.values:
            return f"must be {_listed(self.values)}"
        if self.name.endswith("scheme") and not (isinstance(value, str) and is_valid_scheme(value)):
            return "must begin with a lowercase letter, then have lowercase letters, digits, +, . and - only"
        if self.form and isinstance(value, str) and not re.fullmatch(self.form.pattern, value, re.ASCII):
            return f"must be {self.form.rule}"
        is_number = isinstance(value, float) or type(value) is int
        return self._bounds(cast("float", value)) if is_number else None

    def _bounds(self, value: float) -> str | None:
        if self.high is not None and not (self.low or 0) <= value <= self.high:
            return f"must be {self.low:g} to {self.high:g}"
        return f"must be at least {self.low:g}" if self.low is not None and value < self.low else None


def _is(value: Json, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _listed(values: tuple[str, ...]) -> str:
    *most, last = (repr(value) for value in values)
    return f"{', '.join(most)} or {last}" if most else last


_HEX: Final = Form("#[0-9A-Fa-f]{6}", "a colour of six digits, such as #000000")
_HEX8: Final = Form("#([0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})", "a colour of six or eight digits, such as #00000088")
_URL: Final = Form(r"https?://\S+", "a URL with http or https")
_SDK: Final = Form(r"\d+\.\d+\.\d+|UNVERSIONED", "MAJOR.MINOR.PATCH")
_TARGET: Final = Form(r"\d+(\.\d+)?", "MAJOR.MINOR or MAJOR")
_STYLE: Final = ("light", "dark", "automatic")
_TEXT: Final = ("string",)
_FLAG: Final = ("boolean",)
_LIST: Final = ("array",)
_MAP: Final = ("object",)
_TEXT_OR_MAP: Final = ("string", "object")
_TEXT_OR_LIST: Final = ("string", "array")

_TOP: Final = (
    *(Key(name) for name in ("name", "description", "slug", "owner", "version", "icon")),
    Key("currentFullName", generated=True),
    Key("originalFullName", generated=True),
    Key("sdkVersion", form=_SDK),
    Key("runtimeVersion", _TEXT_OR_MAP),
    Key("platforms", _LIST, ("ios", "android", "web"), default=["ios", "android"]),
    Key("githubUrl", form=_URL),
    Key("orientation", _TEXT, ("default", "portrait", "landscape")),
    Key("userInterfaceStyle", _TEXT, _STYLE, default="light"),
    Key("backgroundColor", default="#ffffff", form=_HEX),
    Key("primaryColor", form=_HEX),
    Key("androidStatusBar", _MAP, deprecated="since the reference of SDK 58"),
    Key("androidStatusBar.barStyle", _TEXT, ("light-content", "dark-content"), default="dark-content"),
    Key("androidStatusBar.backgroundColor", default="#00000000", form=_HEX8),
    Key("androidStatusBar.hidden", _FLAG, default=False),
    Key("androidStatusBar.translucent", _FLAG, default=True),
    Key("developmentClient", _MAP),
    Key("developmentClient.silentLaunch", _FLAG),
    Key("scheme", _TEXT_OR_LIST),
    Key("extra", _MAP),
    Key("locales", _MAP),
    Key("plugins", _LIST),
    Key("buildCacheProvider", ()),
)
_UPDATES: Final = (
    Key("updates", _MAP),
    Key("updates.enabled", _FLAG, default=True),
    Key("updates.url", form=_URL),
    Key("updates.requestHeaders", _MAP),
    Key("updates.checkAutomatically", _TEXT, ("ON_LOAD", "ON_ERROR_RECOVERY", "WIFI_ONLY", "NEVER"), default="ON_LOAD"),
    Key("updates.fallbackToCacheTimeout", ("number",), default=0, low=0, high=300_000),
    Key("updates.useEmbeddedUpdate", _FLAG, default=True),
    Key("updates.codeSigningCertificate"),
    Key("updates.codeSigningMetadata", _MAP),
    Key("updates.codeSigningMetadata.alg", _TEXT, ("rsa-v1_5-sha256",)),
    Key("updates.codeSigningMetadata.keyid"),
    Key("updates.assetPatternsToBeBundled", _LIST),
    Key("updates.disableAntiBrickingMeasures", _FLAG, default=False),
    Key("updates.useNativeDebug", _FLAG, default=False),
    Key("updates.enableBsdiffPatchSupport", _FLAG, default=True),
    Key("updates.excludeFromBackup", _FLAG, default=False, first=58),
    Key("updates.maxUpdatesToKeep", ("integer",), default=2, low=1, first=58),
)
_IOS: Final = (
    Key("ios", _MAP),
    *(Key(f"ios.{name}") for name in ("appleTeamId", "publishManifestPath", "publishBundlePath", "buildNumber")),
    *(Key(f"ios.{name}") for name in ("bundleIdentifier", "servicesFile", "version")),
    Key("ios.deploymentTarget", form=_TARGET, first=58),
    Key("ios.backgroundColor", form=_HEX),
    Key("ios.scheme", _TEXT_OR_LIST),
    Key("ios.icon", _TEXT_OR_MAP),
    *(Key(f"ios.icon.{name}") for name in ("light", "dark", "tinted")),
    Key("ios.userInterfaceStyle", _TEXT, _STYLE),
    Key("ios.appStoreUrl", form=_URL),
    Key("ios.bitcode", ()),
    Key("ios.config", _MAP),
    Key("ios.config.usesNonExemptEncryption", _FLAG),
    Key("ios.config.mapsApiKey"),
    Key("ios.supportsTablet", _FLAG, default=False),
    Key("ios.isTabletOnly", _FLAG),
    Key("ios.requireFullScreen", _FLAG, default=False),
    Key("ios.infoPlist", _MAP),
    Key("ios.entitlements", _MAP),
    Key("ios.runtimeVersion", _TEXT_OR_MAP),
)
_OLDER: Final = (
    Key("notification", _MAP, older=True, removed=55, deprecated="and removed in SDK 55"),
    Key("notification.icon", older=True),
    Key("notification.color", default="#ffffff", older=True),
    Key("notification.iosDisplayInForeground", _FLAG, default=False, older=True),
    Key("notification.androidMode", _TEXT, ("default", "collapse"), older=True),
    Key("notification.androidCollapsedTitle", older=True),
    Key("androidNavigationBar", _MAP, older=True),
    Key("androidNavigationBar.visible", _TEXT, ("leanback", "immersive", "sticky-immersive"), older=True),
    Key("androidNavigationBar.barStyle", older=True),
    Key("androidNavigationBar.backgroundColor", older=True),
    Key("androidNavigationBar.enforceContrast", _FLAG, default=True, older=True),
    Key("splash", _MAP, older=True),
    Key("splash.backgroundColor", older=True),
    Key("splash.resizeMode", _TEXT, ("cover", "contain"), default="contain", older=True),
    Key("splash.image", older=True),
    Key("jsEngine", _TEXT, ("hermes", "jsc"), default="hermes", older=True, deprecated="there is one engine"),
    Key("newArchEnabled", _FLAG, default=True, older=True),
    Key("web", _MAP, older=True),
    *(Key(f"web.{name}", (), older=True) for name in ("preferRelatedApplications", "dangerous", "splash", "config")),
    Key("web.bundler", _TEXT, ("webpack", "metro"), older=True),
    Key("experiments", _MAP, older=True),
    Key("experiments.baseUrl", default="", older=True),
    *(
        Key(f"experiments.{name}", (), older=True)
        for name in (
            *("autolinkingModuleResolution", "supportsTVOnly", "tsconfigPaths", "turboModules", "reactCanary"),
            *("reactCompiler", "reactServerComponentRoutes", "reactServerFunctions"),
        )
    ),
    Key("experiments.typedRoutes", _FLAG, older=True),
    Key("experiments.buildCacheProvider", (), older=True, deprecated="use the key at the top"),
    Key("_internal", _MAP, older=True),
    Key("_internal.pluginHistory", _MAP, older=True),
)

KEYS: Final[Mapping[str, Key]] = {key.name: key for key in (*_TOP, *_UPDATES, *_IOS, *_OLDER)}

OPEN: Final = frozenset(
    ("extra", "locales", "updates.requestHeaders", "ios.infoPlist", "ios.entitlements", "android", "web.config")
)
"""Sections whose keys are the project's own, or not shown."""


def setting(config: Json, name: str, sdk: int = NEWEST_SDK) -> Json:
    """Return a value of a configuration, by default that of the reference of an SDK version."""
    value = at(config, *name.split("."))
    if value is not None or name not in KEYS:
        return value
    if name == "updates.enableBsdiffPatchSupport":
        return sdk > OLDEST_SDK
    if name == "androidStatusBar.backgroundColor" and at(config, "androidStatusBar", "barStyle") == "light-content":
        return "#00000088"
    return KEYS[name].default
