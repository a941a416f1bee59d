"""An identity provider that a test controls; needs the extra ``services``."""

from pytest_device.auth.provider.model import Authorization as Authorization
from pytest_device.auth.provider.model import Client as Client
from pytest_device.auth.provider.model import Failure as Failure
from pytest_device.auth.provider.model import IssuedTokens as IssuedTokens
from pytest_device.auth.provider.model import Lifetimes as Lifetimes
from pytest_device.auth.provider.model import ProviderClock as ProviderClock
from pytest_device.auth.provider.model import SeenRequest as SeenRequest
from pytest_device.auth.provider.model import User as User
from pytest_device.auth.provider.server import IdentityProvider as IdentityProvider
