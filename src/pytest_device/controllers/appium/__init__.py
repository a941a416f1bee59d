"""The Appium driver of a session, from its options to its quit, with a time limit for each step.

``options`` merges the capabilities, ``connection`` configures the client, ``drivers`` starts and quits the driver;
``refusal`` explains a rejected start, ``launch`` opens the link of the marker, ``evidence`` collects artifacts.
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
