// Runs in the document's own world. Answers page-properties.js; CHANNEL is defined by page.js.

document.addEventListener(CHANNEL, (event) => {
  event.stopImmediatePropagation();
  const [element] = event.composedPath();
  const { name, value } = event.detail;
  if (value !== undefined) element[name] = value;
  const now = element[name];
  const isPlain = ['string', 'number', 'boolean'].includes(typeof now);
  document.dispatchEvent(new CustomEvent(`${CHANNEL}-answer`, { detail: { value: isPlain ? now : undefined } }));
}, true);
