"""Configuration, environment, routes and runtime version of the app under test; independent of pytest."""

from pytest_device.app.bundler import CssModule as CssModule
from pytest_device.app.bundler import css_module_name as css_module_name
from pytest_device.app.bundler import debug_id as debug_id
from pytest_device.app.checks import check as check
from pytest_device.app.checks.finding import Finding as Finding
from pytest_device.app.checks.packages import (
    app_config_fields_not_synced as app_config_fields_not_synced,
)
from pytest_device.app.checks.packages import install_check as install_check
from pytest_device.app.env import EnvResult as EnvResult
from pytest_device.app.env import load_env as load_env
from pytest_device.app.inlining import EnvRead as EnvRead
from pytest_device.app.inlining import inlined_public as inlined_public
from pytest_device.app.link import Links as Links
from pytest_device.app.project import Project as Project
from pytest_device.app.project import load_project as load_project
from pytest_device.app.routes.match import Match as Match
from pytest_device.app.routes.names import Route as Route
from pytest_device.app.routes.scan import Routes as Routes
from pytest_device.app.runtime import (
    is_valid_runtime_version as is_valid_runtime_version,
)
from pytest_device.app.runtime import is_valid_scheme as is_valid_scheme
from pytest_device.app.runtime import resolve_runtime_version as resolve_runtime_version
from pytest_device.app.sections import AppConfig as AppConfig
from pytest_device.app.vendor import VendorProfile as VendorProfile
