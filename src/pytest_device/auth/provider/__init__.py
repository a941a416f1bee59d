"""Identity provider for tests; requires the extra ``services``."""

# ruff: noqa: E402  # a missing package is reported before the imports fail

from pytest_device.serving import need_extra

need_extra(
    "pytest_device.auth.provider", "starlette", "uvicorn", "joserfc", "cryptography"
)

from pytest_device.auth.provider.model import Authorization as Authorization
from pytest_device.auth.provider.model import Client as Client
from pytest_device.auth.provider.model import Failure as Failure
from pytest_device.auth.provider.model import IssuedTokens as IssuedTokens
from pytest_device.auth.provider.model import Lifetimes as Lifetimes
from pytest_device.auth.provider.model import ProviderClock as ProviderClock
from pytest_device.auth.provider.model import SeenRequest as SeenRequest
from pytest_device.auth.provider.model import User as User
from pytest_device.auth.provider.server import IdentityProvider as IdentityProvider
