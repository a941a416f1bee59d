// Finds the form of a sign-in page. Runs in the page: `form("describe")` says what the page shows, `form("username")`
// and `form("password")` focus a field and return whether there is one, `form("button")` returns where to click.
(wanted) => {
  const text = (value) => (value || "").replace(/\s+/g, " ").trim();

  // Components of a page may have trees of their own.
  const all = (root) =>
    [...root.querySelectorAll("*")].flatMap((element) =>
      element.shadowRoot ? [element, ...all(element.shadowRoot)] : [element]);

  // A field that no user sees catches programs that fill in every field.
  const isVisible = (element) => {
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    return box.width > 4 && box.height > 4 && box.right > 0 && box.bottom > 0 &&
      style.visibility !== "hidden" && style.display !== "none" && Number(style.opacity) > 0.05 &&
      !element.closest("[aria-hidden=true], [inert]");
  };

  const words = (element) =>
    ["id", "name", "autocomplete", "placeholder", "aria-label", "title", "class"]
      .map((name) => element.getAttribute(name) || "").join(" ").toLowerCase();

  const elements = all(document);
  const shown = elements.filter(isVisible);
  const inputs = shown.filter((element) =>
    element.localName === "input" && !element.disabled && !element.readOnly);
  const ofType = (...types) => inputs.filter((element) => types.includes(element.type));

  const isCode = (element) =>
    element.autocomplete === "one-time-code" ||
    /one.?time|otp|\bmfa|2fa|two.?factor|verification.?code|passcode|security.?code/.test(words(element));
  const texts = ofType("text", "email", "tel", "number");
  const code = [...texts, ...ofType("password")].find(isCode);
  const password = ofType("password").find((element) => element !== code);

  const isUsername = (element) => /user|e-?mail|login|account|identifier|\bname\b/.test(words(element));
  const named = texts.filter((element) => element !== code && !/search/.test(words(element)));
  const before = password
    ? named.filter((element) =>
        element.compareDocumentPosition(password) & Node.DOCUMENT_POSITION_FOLLOWING)
    : [];
  const username =
    named.find((element) => /username|email/.test(element.autocomplete)) ||
    named.find((element) => element.type === "email" || isUsername(element)) ||
    before.at(-1) || (code ? undefined : named[0]);

  const buttons = shown.filter((element) =>
    (element.localName === "button" && !element.disabled) || element.getAttribute("role") === "button" ||
    (element.localName === "input" && ["submit", "button", "image"].includes(element.type)));
  const label = (button) => text(button.innerText || button.value || button.getAttribute("aria-label"));

  const focus = (field) => {
    if (!field) return false;
    field.focus();
    if (field.select) field.select();
    return true;
  };

  const button = () => {
    const form = (password || username || {}).form;
    const own = buttons.filter((one) => !form || one.form === form);
    const submits = own.filter((one) => one.type === "submit" || one.type === "image");
    const best = (submits.length ? submits : own)
      .find((one) => /sign.?in|log.?in|continue|next|submit/i.test(label(one))) || submits[0] || own[0];
    if (!best) return null;
    best.scrollIntoView({ block: "center", behavior: "instant" });
    const box = best.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };

  const isCaptcha = (element) =>
    /captcha/.test(`${words(element)} ${(element.getAttribute("src") || "").toLowerCase()}`);
  const alerts = shown.filter((element) =>
    ["alert", "alertdialog"].includes(element.getAttribute("role")) ||
    element.getAttribute("aria-live") === "assertive" ||
    (/(^|[\s_-])(error|invalid|danger|alert)([\s_-]|$)/.test(words(element)) && element.localName !== "input"));

  const isSecure = (url) =>
    url.protocol === "https:" || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  const action = (password && password.form && password.form.action) || location.href;
  const secure = isSecure(location) && isSecure(new URL(String(action), location.href));

  switch (wanted) {
    case "username": return focus(username);
    case "password": return secure && focus(password); // again: the page may be another one by now
    case "button": return button();
    default: {
      return {
        state: document.readyState,
        address: location.origin + location.pathname,
        title: text(document.title) || text((shown.find((one) => one.localName === "h1") || {}).innerText),
        text: text(document.body && document.body.innerText).slice(0, 400),
        alert: text(alerts.map((one) => one.innerText).find(text)).slice(0, 200),
        username: Boolean(username),
        password: Boolean(password),
        code: Boolean(code),
        captcha: shown.some(isCaptcha),
        buttons: [...new Set(buttons.map(label).filter(Boolean))].slice(0, 6),
        secure,
      };
    }
  }
}
