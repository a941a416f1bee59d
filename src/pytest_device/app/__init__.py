"""The app under test: its configuration, environment, routes and runtime version; pure code, no pytest."""

from pytest_device.app.env import EnvResult as EnvResult
from pytest_device.app.env import load_env as load_env
from pytest_device.app.project import Project as Project
from pytest_device.app.project import load_project as load_project
from pytest_device.app.routes.match import Match as Match
from pytest_device.app.routes.scan import Route as Route
from pytest_device.app.routes.scan import Routes as Routes
