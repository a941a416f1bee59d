// The names of native classes: of iOS's element types, and of the views of Android's framework.

/** Element types, without their prefix. WebDriverAgent takes others with the prefix for Other. */
const TYPES = `
  Any Other Application Group Window Sheet Drawer Alert Dialog Button RadioButton RadioGroup CheckBox DisclosureTriangle
  PopUpButton ComboBox MenuButton ToolbarButton Popover Keyboard Key NavigationBar TabBar TabGroup Toolbar StatusBar Table
  TableRow TableColumn Outline OutlineRow Browser CollectionView Slider PageIndicator ProgressIndicator ActivityIndicator
  SegmentedControl Picker PickerWheel Switch Toggle Link Image Icon SearchField ScrollView ScrollBar StaticText TextField
  SecureTextField DatePicker TextView Menu MenuItem MenuBar MenuBarItem Map WebView IncrementArrow DecrementArrow Timeline
  RatingIndicator ValueIndicator SplitGroup Splitter RelevanceIndicator ColorWell HelpTag Matte DockItem Ruler RulerMarker
  Grid LevelIndicator Cell LayoutArea LayoutItem Handle Stepper Tab TouchBar StatusItem
`;

/** Views of the framework: the UiAutomator2 server knows no class of an app or of a library. */
const VIEWS = {
  'android.widget': `
    AbsListView AbsSeekBar AbsSpinner AdapterView AutoCompleteTextView Button CalendarView CheckBox CheckedTextView
    Chronometer CompoundButton DatePicker EditText ExpandableListView FrameLayout Gallery GridLayout GridView
    HorizontalScrollView ImageButton ImageSwitcher ImageView LinearLayout ListView MultiAutoCompleteTextView NumberPicker
    ProgressBar QuickContactBadge RadioButton RadioGroup RatingBar RelativeLayout ScrollView SearchView SeekBar Space
    Spinner StackView Switch TabHost TabWidget TableLayout TableRow TextClock TextSwitcher TextView TimePicker
    ToggleButton Toolbar VideoView ViewAnimator ViewFlipper ViewSwitcher ZoomButton ZoomControls
  `,
  'android.view': 'SurfaceView TextureView View ViewGroup ViewStub',
  'android.webkit': 'WebView',
  'android.app': 'ActionBar AlertDialog DatePickerDialog Dialog TimePickerDialog',
};

const words = (text) => text.split(/\s+/).filter(Boolean);

export const IOS_PREFIX = 'XCUIElementType';
export const IOS_TYPES = new Set(words(TYPES).map((name) => IOS_PREFIX + name));
export const ANDROID_VIEWS = new Set(
  Object.entries(VIEWS).flatMap(([name, views]) => words(views).map((view) => `${name}.${view}`)),
);
