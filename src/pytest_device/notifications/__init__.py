"""Schedules, delivers and answers notifications as the library does on devices; knows neither sessions nor pytest."""

from pytest_device.notifications.dates import fires_between as fires_between
from pytest_device.notifications.dates import next_trigger_date as next_trigger_date
from pytest_device.notifications.errors import NotificationError as NotificationError
from pytest_device.notifications.errors import NotSpecified as NotSpecified
from pytest_device.notifications.errors import TriggerError as TriggerError
from pytest_device.notifications.tokens import DevicePushToken as DevicePushToken
from pytest_device.notifications.tokens import PushToken as PushToken
from pytest_device.notifications.tokens import PushTokenRequest as PushTokenRequest
from pytest_device.notifications.triggers import CalendarTrigger as CalendarTrigger
from pytest_device.notifications.triggers import ChannelTrigger as ChannelTrigger
from pytest_device.notifications.triggers import DailyTrigger as DailyTrigger
from pytest_device.notifications.triggers import DateTrigger as DateTrigger
from pytest_device.notifications.triggers import MonthlyTrigger as MonthlyTrigger
from pytest_device.notifications.triggers import TimeIntervalTrigger as TimeIntervalTrigger
from pytest_device.notifications.triggers import Trigger as Trigger
from pytest_device.notifications.triggers import WeeklyTrigger as WeeklyTrigger
from pytest_device.notifications.triggers import YearlyTrigger as YearlyTrigger
from pytest_device.notifications.triggers import parse_trigger as parse_trigger
