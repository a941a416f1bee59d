"""Over-the-air updates: will one load, and what does the app do if not; knows neither sessions nor pytest."""

from pytest_device.errors import CertificateError as CertificateError
from pytest_device.errors import UpdateError as UpdateError
from pytest_device.updates.loading import will_load as will_load
from pytest_device.updates.settings import DisabledReason as DisabledReason
from pytest_device.updates.settings import UpdateSettings as UpdateSettings
from pytest_device.updates.signing import CodeSigning as CodeSigning
from pytest_device.updates.signing import generate_code_signing as generate_code_signing
from pytest_device.updates.signing import sign as sign
from pytest_device.updates.signing import validate_certificate as validate_certificate
from pytest_device.updates.signing import verify as verify
from pytest_device.updates.values import NOTHING as NOTHING
from pytest_device.updates.values import Asset as Asset
from pytest_device.updates.values import Build as Build
from pytest_device.updates.values import Code as Code
from pytest_device.updates.values import Reason as Reason
from pytest_device.updates.values import Update as Update
from pytest_device.updates.values import Verdict as Verdict
