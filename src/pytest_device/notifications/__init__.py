"""Notifications: schedules, push messages, tokens and user interaction, independent of sessions and pytest."""

from pytest_device.notifications.center import AppState as AppState
from pytest_device.notifications.center import NotificationCenter as NotificationCenter
from pytest_device.notifications.channels import (
    NotificationChannel as NotificationChannel,
)
from pytest_device.notifications.channels import (
    NotificationChannelGroup as NotificationChannelGroup,
)
from pytest_device.notifications.channels import (
    NotificationChannelInput as NotificationChannelInput,
)
from pytest_device.notifications.content import (
    DEFAULT_ACTION_IDENTIFIER as DEFAULT_ACTION_IDENTIFIER,
)
from pytest_device.notifications.content import ActionOptions as ActionOptions
from pytest_device.notifications.content import BeaconRegion as BeaconRegion
from pytest_device.notifications.content import CircularRegion as CircularRegion
from pytest_device.notifications.content import LocationTrigger as LocationTrigger
from pytest_device.notifications.content import Notification as Notification
from pytest_device.notifications.content import NotificationAction as NotificationAction
from pytest_device.notifications.content import (
    NotificationBehavior as NotificationBehavior,
)
from pytest_device.notifications.content import (
    NotificationCategory as NotificationCategory,
)
from pytest_device.notifications.content import (
    NotificationContent as NotificationContent,
)
from pytest_device.notifications.content import (
    NotificationHandler as NotificationHandler,
)
from pytest_device.notifications.content import (
    NotificationRequest as NotificationRequest,
)
from pytest_device.notifications.content import (
    NotificationRequestInput as NotificationRequestInput,
)
from pytest_device.notifications.content import (
    NotificationResponse as NotificationResponse,
)
from pytest_device.notifications.content import PushMessage as PushMessage
from pytest_device.notifications.content import RemoteMessage as RemoteMessage
from pytest_device.notifications.content import TextInput as TextInput
from pytest_device.notifications.content import UnknownTrigger as UnknownTrigger
from pytest_device.notifications.dates import fires_between as fires_between
from pytest_device.notifications.dates import next_trigger_date as next_trigger_date
from pytest_device.notifications.errors import NotificationError as NotificationError
from pytest_device.notifications.errors import NotSpecified as NotSpecified
from pytest_device.notifications.errors import TriggerError as TriggerError
from pytest_device.notifications.lists import NotificationList as NotificationList
from pytest_device.notifications.lists import Shown as Shown
from pytest_device.notifications.permissions import (
    AndroidPermissions as AndroidPermissions,
)
from pytest_device.notifications.permissions import (
    IosAuthorizationStatus as IosAuthorizationStatus,
)
from pytest_device.notifications.permissions import IosPermissions as IosPermissions
from pytest_device.notifications.permissions import (
    IosPermissionsRequest as IosPermissionsRequest,
)
from pytest_device.notifications.permissions import (
    NotificationPermissionsRequest as NotificationPermissionsRequest,
)
from pytest_device.notifications.permissions import (
    NotificationPermissionsStatus as NotificationPermissionsStatus,
)
from pytest_device.notifications.presenting import Dropped as Dropped
from pytest_device.notifications.presenting import Presented as Presented
from pytest_device.notifications.presenting import Subscription as Subscription
from pytest_device.notifications.push import AgentDevicePush as AgentDevicePush
from pytest_device.notifications.push import AppiumPush as AppiumPush
from pytest_device.notifications.push import DevicePush as DevicePush
from pytest_device.notifications.push import LocalPush as LocalPush
from pytest_device.notifications.push import PushDelivery as PushDelivery
from pytest_device.notifications.push import PushDevice as PushDevice
from pytest_device.notifications.tokens import DevicePushToken as DevicePushToken
from pytest_device.notifications.tokens import PushToken as PushToken
from pytest_device.notifications.tokens import PushTokenRequest as PushTokenRequest
from pytest_device.notifications.triggers import CalendarTrigger as CalendarTrigger
from pytest_device.notifications.triggers import ChannelTrigger as ChannelTrigger
from pytest_device.notifications.triggers import DailyTrigger as DailyTrigger
from pytest_device.notifications.triggers import DateTrigger as DateTrigger
from pytest_device.notifications.triggers import MonthlyTrigger as MonthlyTrigger
from pytest_device.notifications.triggers import (
    TimeIntervalTrigger as TimeIntervalTrigger,
)
from pytest_device.notifications.triggers import Trigger as Trigger
from pytest_device.notifications.triggers import WeeklyTrigger as WeeklyTrigger
from pytest_device.notifications.triggers import YearlyTrigger as YearlyTrigger
from pytest_device.notifications.triggers import parse_trigger as parse_trigger
