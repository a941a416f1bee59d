"""Identity provider for tests; requires the extra ``services``."""

# ruff: noqa: E402  # a missing package is reported before the imports fail

from importlib.util import find_spec

for _name in ("starlette", "uvicorn", "joserfc", "cryptography"):
    if find_spec(_name) is None:
        _problem = f"pytest_device.auth.provider needs {_name}: pip install 'pytest-device[services]'"
        raise ModuleNotFoundError(_problem, name=_name)

from pytest_device.auth.provider.model import Authorization as Authorization
from pytest_device.auth.provider.model import Client as Client
from pytest_device.auth.provider.model import Failure as Failure
from pytest_device.auth.provider.model import IssuedTokens as IssuedTokens
from pytest_device.auth.provider.model import Lifetimes as Lifetimes
from pytest_device.auth.provider.model import ProviderClock as ProviderClock
from pytest_device.auth.provider.model import SeenRequest as SeenRequest
from pytest_device.auth.provider.model import User as User
from pytest_device.auth.provider.server import IdentityProvider as IdentityProvider
