// The types of the capabilities of each platform's driver. Appium refuses a value of another type; of a boolean or a number
// that is written as a text, it makes what is meant, so that the text `false` is no yes.

import { CONSTRAINTS } from './capabilities.js';

/** The names by Appium's constraint, as UiAutomator2 and XCUITest have them. */
const NAMES = {
  Android: {
    isBoolean: `
      adbListenAllNetwork allowDelayAdb allowOfflineDevices allowTestPackages appWaitForLaunch autoGrantPermissions
      chromedriverUseSystemExecutable clearDeviceLogsOnStart clearSystemFiles disableSuppressAccessibilityService
      disableWindowAnimation dontStopAppOnReset enablePerformanceLogging enableWebviewDetailsCollection enforceAppInstall
      ensureWebviewsHavePages extractChromeAndroidPackageFromContextName forceAppLaunch gpsEnabled hideKeyboard
      ignoreHiddenApiPolicyError ignoreUnimportantViews isHeadless nativeWebScreenshot noSign recreateChromeDriverSessions
      shouldTerminateApp showChromedriverLog skipDeviceInitialization skipLogcatCapture skipServerInstallation
      skipSettingsAppReinstall skipUnlock suppressKillServer unicodeKeyboard useKeystore
    `,
    isNumber: `
      adbExecTimeout adbPort androidDeviceReadyTimeout androidInstallTimeout appWaitDuration autoWebviewTimeout
      avdLaunchTimeout avdReadyTimeout deviceReadyTimeout launchTimeout mjpegServerPort remoteAppsCacheLimit systemPort
      uiautomator2ServerInstallTimeout uiautomator2ServerLaunchTimeout uiautomator2ServerReadTimeout unlockSuccessTimeout
      userProfile webviewDevtoolsPort
    `,
    isObject: `
      avdEnv chromeLoggingPrefs chromeOptions injectedImageProperties
    `,
    isArray: `
      logcatFilterSpecs
    `,
    isString: `
      androidDeviceSocket appActivity appPackage appWaitActivity appWaitPackage autoWebviewName avd buildToolsVersion
      deviceName intentAction intentCategory intentFlags keyAlias keyPassword keystorePassword keystorePath localeScript
      logcatFormat mjpegScreenshotUrl mockLocationApp networkSpeed optionalIntentArguments otherApps remoteAdbHost timeZone
      uninstallOtherPackages unlockKey unlockStrategy unlockType
    `,
  },
  iOS: {
    isBoolean: `
      absoluteWebLocations allowProvisioningDeviceRegistration autoAcceptAlerts autoDismissAlerts autoFillPasswords
      clearSystemFiles connectHardwareKeyboard disableAutomaticScreenshots enableAsyncExecuteFromHttps
      enablePerformanceLogging enforceAppInstall enforceFreshSimulatorCreation forceAppLaunch
      forceSimulatorSoftwareKeyboardPresence forceTurnOnSoftwareKeyboardSimulator fullContextList ignoreAboutBlankUrl
      includeSafariInWebviews isHeadless keepKeyChains nativeTyping nativeWebTap nativeWebTapStrict prebuildWDA reduceMotion
      reduceTransparency resetLocationService resetOnSessionStartOnly safariAllowPopups safariGarbageCollect
      safariIgnoreFraudWarning safariLogAllCommunication safariLogAllCommunicationHexDump safariOpenLinksInBackground
      safariShowFullResponse shouldTerminateApp shouldUseSingletonTestManager showIOSLog showSafariConsoleLog
      showSafariNetworkLog showXcodeLog shutdownOtherSimulators simulatorTracePointer skipLogCapture
      skipSyncUiDialogTranslation skipTriggerInputEventAfterSendkeys useJSONSource useNativeCachingStrategy useNewWDA
      usePrebuiltWDA usePreinstalledWDA useXctestrunFile
    `,
    isNumber: `
      appLaunchStateTimeoutSec appPushTimeout iosInstallPause maxTypingFrequency mjpegServerPort resultBundleVersion
      safariSocketChunkSize safariWebInspectorMaxFrameLength screenshotQuality simulatorStartupTimeout waitForIdleTimeout
      wdaConnectionTimeout wdaEventloopIdleDelay wdaLaunchTimeout wdaLocalPort wdaRemotePort wdaStartupRetries
      wdaStartupRetryInterval webviewAtomWaitTimeout webviewConnectRetries webviewConnectTimeout
    `,
    isObject: `
      safariGlobalPreferences
    `,
    isString: `
      agentPath appTimeZone bootstrapPath bundleId calendarFormat customSSLCert derivedDataPath deviceName
      initialDeeplinkUrl iosSimulatorLogsPredicate iosSyslogFile keychainPassword keychainPath keychainsExcludePatterns
      localizableStringsDir mjpegScreenshotUrl otherApps permissions prebuiltWDAPath remoteDebugProxy resultBundlePath
      safariIgnoreWebHostnames safariInitialUrl scaleFactor sendKeyStrategy simulatorDevicesSetPath simulatorLogLevel
      simulatorPasteboardAutomaticSync simulatorWindowCenter updatedWDABundleId updatedWDABundleIdSuffix wdaBaseUrl
      wdaBindingIP webDriverAgentUrl xcodeConfigFile xcodeOrgId xcodeSigningId
    `,
  },
};

/** Return what the base class checks for a platform, in the form of Appium. */
export function constraintsOf(platform) {
  const constraints = { ...CONSTRAINTS };
  for (const [type, names] of Object.entries(NAMES[platform])) {
    for (const name of names.split(/\s+/).filter(Boolean)) constraints[name] = { [type]: true, ...CONSTRAINTS[name] };
  }

  return constraints;
}
