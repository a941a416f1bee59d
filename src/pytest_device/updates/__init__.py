"""Over-the-air updates: load checks, a launch model, code signing and a service; independent of pytest."""

from pytest_device.updates.loading import will_load as will_load
from pytest_device.updates.model import LaunchModel as LaunchModel
from pytest_device.updates.model import play as play
from pytest_device.updates.published_protocol_v1 import (
    signature_header as signature_header,
)
from pytest_device.updates.settings import DisabledReason as DisabledReason
from pytest_device.updates.settings import UpdateSettings as UpdateSettings
from pytest_device.updates.signing import CodeSigning as CodeSigning
from pytest_device.updates.signing import generate_code_signing as generate_code_signing
from pytest_device.updates.signing import sign as sign
from pytest_device.updates.signing import validate_certificate as validate_certificate
from pytest_device.updates.signing import verify as verify
from pytest_device.updates.snapshots import Constants as Constants
from pytest_device.updates.snapshots import UpdatesState as UpdatesState
from pytest_device.updates.snapshots import broken_rules as broken_rules
from pytest_device.updates.snapshots import constants_of as constants_of
from pytest_device.updates.snapshots import differences as differences
from pytest_device.updates.snapshots import state_of as state_of
from pytest_device.updates.values import NOT_SPECIFIED as NOT_SPECIFIED
from pytest_device.updates.values import NOTHING as NOTHING
from pytest_device.updates.values import Asset as Asset
from pytest_device.updates.values import Build as Build
from pytest_device.updates.values import CertificateError as CertificateError
from pytest_device.updates.values import Checked as Checked
from pytest_device.updates.values import Cleaned as Cleaned
from pytest_device.updates.values import Code as Code
from pytest_device.updates.values import Downloaded as Downloaded
from pytest_device.updates.values import EmergencyFallback as EmergencyFallback
from pytest_device.updates.values import Launched as Launched
from pytest_device.updates.values import Mode as Mode
from pytest_device.updates.values import NotSpecified as NotSpecified
from pytest_device.updates.values import Offer as Offer
from pytest_device.updates.values import Reason as Reason
from pytest_device.updates.values import Rejected as Rejected
from pytest_device.updates.values import Signature as Signature
from pytest_device.updates.values import SignatureState as SignatureState
from pytest_device.updates.values import Update as Update
from pytest_device.updates.values import UpdateError as UpdateError
from pytest_device.updates.values import Verdict as Verdict
