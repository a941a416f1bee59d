"""The Appium side of a session: a driver built, started, handed over, asked for evidence and quit, all within bounds.

``options`` say what is asked of Appium, ``connection`` by what way; ``drivers`` join them from the start to the quit,
with ``refusal`` for a start that is refused and ``launch`` for what follows one. ``evidence`` is what a failure leaves.
"""

from pytest_device.controllers.appium.connection import COMMAND_SECONDS as COMMAND_SECONDS
from pytest_device.controllers.appium.connection import DriverPolicy as DriverPolicy
from pytest_device.controllers.appium.connection import address_of as address_of
from pytest_device.controllers.appium.drivers import QUIT_SECONDS as QUIT_SECONDS
from pytest_device.controllers.appium.drivers import driver as driver
from pytest_device.controllers.appium.evidence import EVIDENCE_SECONDS as EVIDENCE_SECONDS
from pytest_device.controllers.appium.evidence import LOG_LINES as LOG_LINES
from pytest_device.controllers.appium.evidence import evidence_of as evidence_of
from pytest_device.controllers.appium.options import merged_options as merged_options
