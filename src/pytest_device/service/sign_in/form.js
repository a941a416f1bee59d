// Finds the form of a sign-in page. Runs in the page: `form("describe")` says what the page shows, `form("username")`
// and `form("password")` focus a field and return whether there is one, `form("button")` returns where to click.
(request) => {
  const MAX_TEXT = 400;
  const MAX_ALERT = 200;
  const MAX_BUTTONS = 6;

  const singleLine = (value) => (value || "").replace(/\s+/g, " ").trim();

  // Components of a page may have trees of their own.
  const allElements = (root) =>
    [...root.querySelectorAll("*")].flatMap((element) =>
      element.shadowRoot ? [element, ...allElements(element.shadowRoot)] : [element]);

  // A field that no user sees catches programs that fill in every field.
  const isVisible = (element) => {
    const box = element.getBoundingClientRect();
    if (box.width <= 4 || box.height <= 4 || box.right <= 0 || box.bottom <= 0) return false;

    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || style.display === "none") return false;
    if (Number(style.opacity) <= 0.05) return false;

    return !element.closest("[aria-hidden=true], [inert]");
  };

  /** Return the attributes of an element that say what it is for, in lowercase. */
  const hints = (element) =>
    ["id", "name", "autocomplete", "placeholder", "aria-label", "title", "class"]
      .map((name) => element.getAttribute(name) || "")
      .join(" ")
      .toLowerCase();

  const visible = allElements(document).filter(isVisible);

  // The fields.
  const inputs = visible.filter((element) =>
    element.localName === "input" && !element.disabled && !element.readOnly);
  const textFields = inputs.filter((input) => ["text", "email", "tel", "number"].includes(input.type));
  const passwordFields = inputs.filter((input) => input.type === "password");

  const isCodeField = (input) =>
    input.autocomplete === "one-time-code" ||
    /one.?time|(?<![a-z])t?otp|otp(?![a-z])|(?<![a-z])mfa|2fa|two.?factor|verification.?code|passcode|security.?code/.test(hints(input));
  const code = [...textFields, ...passwordFields].find(isCodeField);

  /** Return the field of the password; a page may also have a form for new users. */
  const findPassword = () => {
    const candidates = passwordFields.filter((input) => input !== code);
    const declared = candidates.find((input) => input.autocomplete === "current-password");
    const isNew = (input) => input.autocomplete === "new-password";

    return declared || candidates.find((input) => !isNew(input)) || candidates[0];
  };
  const password = findPassword();

  /** Return the field of the user name: the most explicit one, or else the one before the password. */
  const findUsername = () => {
    const possible = textFields.filter((input) => input !== code && !/search/.test(hints(input)));
    // Another form may ask for an e-mail address, too, such as that of a newsletter.
    const besidePassword = possible.filter((input) => password?.form && input.form === password.form);
    const candidates = besidePassword.length > 0 ? besidePassword : possible;

    const declared = candidates.find((input) => /username|email/.test(input.autocomplete));
    if (declared) return declared;

    const named = candidates.find((input) =>
      input.type === "email" || /user|e-?mail|login|account|identifier|\bname\b/.test(hints(input)));
    if (named) return named;

    const isBeforePassword = (input) =>
      password && input.compareDocumentPosition(password) & Node.DOCUMENT_POSITION_FOLLOWING;
    const beforePassword = candidates.filter(isBeforePassword).at(-1);
    if (beforePassword) return beforePassword;

    // A page that asks for a code has the user name already.
    return code ? undefined : candidates[0];
  };
  const username = findUsername();

  const focus = (field) => {
    if (!field) return false;

    field.focus();
    // Typed text replaces what the field contains.
    if (field.select) field.select();

    return true;
  };

  // The buttons.
  const isButton = (element) => {
    if (element.getAttribute("role") === "button") return true;
    if (element.localName === "button") return !element.disabled;

    return element.localName === "input" && ["submit", "button", "image"].includes(element.type);
  };
  const buttons = visible.filter(isButton);
  const labelOf = (button) =>
    singleLine(button.innerText || button.value || button.getAttribute("aria-label"));

  /** Return the button that sends the form, or undefined. */
  const findSubmitButton = () => {
    const form = (password || username)?.form;
    const formButtons = buttons.filter((button) => !form || button.form === form);
    const submitButtons = formButtons.filter((button) => button.type === "submit" || button.type === "image");
    const candidates = submitButtons.length > 0 ? submitButtons : formButtons;
    const labeled = candidates.find((button) => /sign.?in|log.?in|continue|next|submit/i.test(labelOf(button)));

    return labeled || candidates[0];
  };

  /** Scroll the button into view, and return its center, or null if there is no button. */
  const showSubmitButton = () => {
    const button = findSubmitButton();
    if (!button) return null;

    button.scrollIntoView({ block: "center", behavior: "instant" });
    const box = button.getBoundingClientRect();

    return [box.left + box.width / 2, box.top + box.height / 2];
  };

  // What else the page shows.
  const isCaptcha = (element) =>
    /captcha/.test(`${hints(element)} ${(element.getAttribute("src") || "").toLowerCase()}`);

  const isAlert = (element) => {
    if (["alert", "alertdialog"].includes(element.getAttribute("role"))) return true;
    if (element.getAttribute("aria-live") === "assertive") return true;

    // An invalid field may have such a class, too, but shows no message.
    return element.localName !== "input" && /(^|[\s_-])(error|invalid|danger|alert)([\s_-]|$)/.test(hints(element));
  };

  const isSecure = (url) =>
    url.protocol === "https:" || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  const action = password?.form?.action || location.href;
  const secure = isSecure(location) && isSecure(new URL(String(action), location.href));

  const describe = () => {
    const heading = visible.find((element) => element.localName === "h1");
    const alertTexts = visible.filter(isAlert).map((element) => singleLine(element.innerText));
    const labels = buttons.map(labelOf).filter((label) => label !== "");

    return {
      state: document.readyState,
      address: location.origin + location.pathname,
      title: singleLine(document.title) || singleLine(heading?.innerText),
      text: singleLine(document.body?.innerText).slice(0, MAX_TEXT),
      alert: (alertTexts.find((text) => text !== "") || "").slice(0, MAX_ALERT),
      username: Boolean(username),
      password: Boolean(password),
      code: Boolean(code),
      captcha: visible.some(isCaptcha),
      buttons: [...new Set(labels)].slice(0, MAX_BUTTONS),
      secure,
    };
  };

  switch (request) {
    case "username": return focus(username);
    // Checked again: the page may be another one by now.
    case "password": return secure && focus(password);
    case "button": return showSubmitButton();
    default: return describe();
  }
}
