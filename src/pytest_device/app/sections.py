"""Typed sections of the app config, and the rules for their keys; the table of keys is derived from both."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from pytest_device.app.document import Json

OLDEST_SDK: Final = 54
NEWEST_SDK: Final = 58
"""Newest SDK version with a known reference; `OLDEST_SDK` is the oldest."""

_KINDS: Final[Mapping[type, tuple[str, ...]]] = {
    str: ("string",), bool: ("boolean",), int: ("integer", "number"), float: ("number",), list: ("array",),
    dict: ("object",),
}  # fmt: skip


def sdk_major(version: str | None) -> int | None:
    """Return the major version of an SDK, or None if it is unknown or ``UNVERSIONED``.

    >>> sdk_major("58.0.0"), sdk_major("UNVERSIONED")
    (58, None)
    """
    # Few digits: Python refuses to convert thousands of them.
    match = re.match(r"(\d{1,9})(?:\.|$)", version or "", re.ASCII)

    return int(match[1]) if match else None


class Form(NamedTuple):
    """Format of a string: its pattern, and the rule for error messages."""

    pattern: str
    rule: str

    def fits(self, text: str) -> bool:
        # ASCII: "\d" must not match digits of other scripts.
        return re.fullmatch(self.pattern, text, re.ASCII) is not None


HEX: Final = Form("#[0-9A-Fa-f]{6}", "a color of six digits, such as #000000")
HEX8: Final = Form(
    "#([0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})",
    "a color of six or eight digits, such as #00000088",
)
URL: Final = Form(r"https?://\S+", "a URL with http or https")
SDK: Final = Form(r"\d+\.\d+\.\d+|UNVERSIONED", "MAJOR.MINOR.PATCH")
TARGET: Final = Form(r"\d+(\.\d+)?", "MAJOR.MINOR or MAJOR")
SCHEME: Final = Form(
    r"[a-z][a-z0-9+.-]*",
    "a lowercase letter, then lowercase letters, digits, +, . and -",
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key; ``first`` is the first reference that contains it, ``removed`` the SDK version that removed it.

    A key without ``kinds`` accepts any value; ``items`` lists the kinds of an array's elements.
    """

    name: str = ""
    kinds: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    default: Json = None
    form: Form | None = None
    low: float = -math.inf
    high: float = math.inf
    first: int = OLDEST_SDK
    removed: int | None = None
    older: bool = False
    """Whether only the older reference contains the key."""
    in_new_projects: bool = False
    """Whether new projects have the key although it is older: a note would be noise. Typed routes need one of them."""
    deprecated: str = ""
    deprecated_in: int = OLDEST_SDK
    """First reference that deprecates the key."""
    generated: bool = False

    @property
    def trail(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))

    def problem(self, value: Json) -> str | None:
        """Return the rule that a value violates, or None.

        >>> Key("ios.icon", kinds=("string",)).problem(7)
        'must be of type string'
        """
        if not _has_kind(value, self.kinds):
            return f"must be of type {' or '.join(self.kinds)}"
        if not isinstance(value, list):
            return self._broken_limit(value)

        for item in value:
            if not _has_kind(item, self.items):
                return f"must have elements of type {' or '.join(self.items)}"
            problem = self._broken_limit(item)
            if problem:
                return problem

        return None

    def _broken_limit(self, value: Json) -> str | None:
        """Return the rule that a value of the right type violates, or None."""
        if self.values and value not in self.values:
            return f"must be {_alternatives(self.values)}"

        if self.form and isinstance(value, str) and not self.form.fits(value):
            return f"must be {self.form.rule}"

        if isinstance(value, int | float) and not self.low <= value <= self.high:
            return f"must be {self.low} to {self.high}"

        return None


def _has_kind(value: Json, kinds: tuple[str, ...]) -> bool:
    """Return whether a value is of one of the kinds; a number without a fraction is an integer."""
    if not kinds:
        return True
    if isinstance(value, float) and value.is_integer():
        value = int(value)

    return any(kind in kinds for kind in _KINDS.get(type(value), ()))


def _alternatives(values: tuple[str, ...]) -> str:
    """Return the values as words.

    >>> _alternatives(("ios", "android", "web"))
    "'ios', 'android' or 'web'"
    """
    *others, last = (repr(value) for value in values)
    if not others:
        return last

    return f"{', '.join(others)} or {last}"


Policy: TypeAlias = Literal["nativeVersion", "sdkVersion", "appVersion", "fingerprint"]
Style: TypeAlias = Literal["light", "dark", "automatic"]

Text: TypeAlias = str | None
Flag: TypeAlias = bool | None
Object: TypeAlias = Mapping[str, object] | None
"""An object with arbitrary or undocumented keys."""
Schemes: TypeAlias = Annotated[str | tuple[str, ...] | None, Key(form=SCHEME)]
Color: TypeAlias = Annotated[str | None, Key(form=HEX)]
Link: TypeAlias = Annotated[str | None, Key(form=URL)]


@dataclass(frozen=True, slots=True, repr=False)
class Section:
    """Base class of sections; absent keys without a default are None, and values are excluded from ``repr``."""


@dataclass(frozen=True, slots=True, repr=False)
class RuntimePolicy(Section):
    policy: Policy | None = None


Runtime: TypeAlias = str | RuntimePolicy | None


@dataclass(frozen=True, slots=True, repr=False)
class StatusBar(Section):
    bar_style: Literal["light-content", "dark-content"] = "dark-content"
    background_color: Annotated[str, Key(form=HEX8)] = "#00000000"
    hidden: bool = False
    translucent: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class DevelopmentClient(Section):
    silent_launch: Flag = None


@dataclass(frozen=True, slots=True, repr=False)
class CodeSigning(Section):
    alg: Literal["rsa-v1_5-sha256"] | None = None
    keyid: Text = None


@dataclass(frozen=True, slots=True, repr=False)
class Updates(Section):
    enabled: bool = True
    url: Link = None
    request_headers: Object = None
    check_automatically: Literal[
        "ON_LOAD", "ON_ERROR_RECOVERY", "WIFI_ONLY", "NEVER"
    ] = "ON_LOAD"
    fallback_to_cache_timeout: Annotated[float, Key(low=0, high=300_000)] = 0
    """Maximum time that a launch waits for an update, in milliseconds."""
    use_embedded_update: bool = True
    code_signing_certificate: Text = None
    code_signing_metadata: CodeSigning = CodeSigning()
    asset_patterns_to_be_bundled: tuple[str, ...] | None = None
    disable_anti_bricking_measures: bool = False
    use_native_debug: bool = False
    enable_bsdiff_patch_support: bool | None = True
    """None is unknown: the references of SDK 55 and 56 don't show the default."""
    exclude_from_backup: Annotated[bool, Key(first=58)] = False
    max_updates_to_keep: Annotated[int, Key(low=2, high=2**31 - 1, first=58)] = 2
    """Kept are at least the running update and the one before, to which a failed launch falls back."""


@dataclass(frozen=True, slots=True, repr=False)
class IosIcon(Section):
    light: Text = None
    dark: Text = None
    tinted: Text = None


@dataclass(frozen=True, slots=True, repr=False)
class IosConfig(Section):
    uses_non_exempt_encryption: Flag = None
    maps_api_key: Text = None


@dataclass(frozen=True, slots=True, repr=False)
class Ios(Section):
    apple_team_id: Text = None
    publish_manifest_path: Text = None
    publish_bundle_path: Text = None
    build_number: Text = None
    bundle_identifier: Text = None
    services_file: Text = None
    version: Text = None
    deployment_target: Annotated[str | None, Key(form=TARGET, first=58)] = None
    background_color: Color = None
    scheme: Schemes = None
    icon: str | IosIcon | None = None
    user_interface_style: Style | None = None
    app_store_url: Link = None
    bitcode: object = None
    config: IosConfig = IosConfig()
    supports_tablet: bool = False
    is_tablet_only: Flag = None
    require_full_screen: bool = False
    info_plist: Object = None
    entitlements: Object = None
    runtime_version: Runtime = None


@dataclass(frozen=True, slots=True, repr=False)
class Notification(Section):
    icon: Text = None
    color: str = "#ffffff"
    ios_display_in_foreground: bool = False
    android_mode: Literal["default", "collapse"] | None = None
    android_collapsed_title: Text = None


@dataclass(frozen=True, slots=True, repr=False)
class NavigationBar(Section):
    visible: Literal["leanback", "immersive", "sticky-immersive"] | None = None
    bar_style: Text = None
    background_color: Text = None
    enforce_contrast: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class Splash(Section):
    background_color: Text = None
    resize_mode: Literal["cover", "contain"] = "contain"
    image: Text = None


@dataclass(frozen=True, slots=True, repr=False)
class WebConfig(Section):
    """Settings of the backend service. In the app config they are in an object whose name is not documented."""

    api_key: Text = None
    auth_domain: Text = None
    database_url: Annotated[str | None, Key("databaseURL")] = None
    project_id: Text = None
    storage_bucket: Text = None
    messaging_sender_id: Text = None
    app_id: Text = None
    measurement_id: Text = None


@dataclass(frozen=True, slots=True, repr=False)
class Web(Section):
    prefer_related_applications: object = None
    dangerous: object = None
    splash: object = None
    config: WebConfig = WebConfig()
    bundler: Literal["webpack", "metro"] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Experiments(Section):
    base_url: str = ""
    typed_routes: Flag = None
    autolinking_module_resolution: object = None
    supports_tv_only: Annotated[object, Key("supportsTVOnly")] = None
    tsconfig_paths: object = None
    turbo_modules: object = None
    react_canary: object = None
    react_compiler: object = None
    react_server_component_routes: object = None
    react_server_functions: object = None
    build_cache_provider: Annotated[
        object, Key(deprecated="use the key at the top")
    ] = None


@dataclass(frozen=True, slots=True, repr=False)
class Internal(Section):
    plugin_history: Object = None


@dataclass(frozen=True, slots=True, repr=False)
class AppConfig(Section):
    """The app config; keys found only in the older reference come last."""

    name: Text = None
    description: Text = None
    slug: Text = None
    owner: Text = None
    version: Text = None
    icon: Text = None
    current_full_name: Annotated[str | None, Key(generated=True)] = None
    original_full_name: Annotated[str | None, Key(generated=True)] = None
    sdk_version: Annotated[str | None, Key(form=SDK)] = None
    runtime_version: Runtime = None
    platforms: tuple[Literal["ios", "android", "web"], ...] = ("ios", "android")
    github_url: Link = None
    orientation: Literal["default", "portrait", "landscape"] | None = None
    user_interface_style: Style = "light"
    background_color: Annotated[str, Key(form=HEX)] = "#ffffff"
    primary_color: Color = None
    android_status_bar: Annotated[
        StatusBar, Key(deprecated="since the reference of SDK 58", deprecated_in=58)
    ] = StatusBar()
    development_client: DevelopmentClient = DevelopmentClient()
    scheme: Schemes = None
    extra: Object = None
    locales: Object = None
    plugins: tuple[object, ...] | None = None
    build_cache_provider: object = None
    updates: Updates = Updates()
    ios: Ios = Ios()
    android: Object = None

    notification: Annotated[
        Notification, Key(older=True, removed=55, deprecated="and removed in SDK 55")
    ] = Notification()
    android_navigation_bar: Annotated[NavigationBar, Key(older=True)] = NavigationBar()
    splash: Annotated[Splash, Key(older=True)] = Splash()
    js_engine: Annotated[
        Literal["hermes", "jsc"], Key(older=True, deprecated="there is one engine")
    ] = "hermes"
    new_arch_enabled: Annotated[bool, Key(older=True, in_new_projects=True)] = True
    web: Annotated[Web, Key(older=True, in_new_projects=True)] = Web()
    experiments: Annotated[Experiments, Key(older=True, in_new_projects=True)] = (
        Experiments()
    )
    internal: Annotated[Internal, Key("_internal", older=True)] = Internal()
