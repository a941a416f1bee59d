// Runs in the page, before the other scripts. Properties that a custom element's own class defines exist in the document's
// world only, so an event asks for them there, by a name that the document cannot guess. CHANNEL is defined by page.js.

/** Return a property of an element as the document's own scripts see it. */
function propertyOf(element, name) {
  if (!element.localName.includes('-')) return element[name];

  return exchange(element, { name });
}

/** Set a property of a custom element. */
function assign(element, name, value) {
  exchange(element, { name, value });
}

function exchange(element, request) {
  let answer;
  const take = ({ detail }) => {
    answer = detail;
  };
  document.addEventListener(`${CHANNEL}-answer`, take, { once: true });
  element.dispatchEvent(new CustomEvent(CHANNEL, { detail: request, composed: true }));
  document.removeEventListener(`${CHANNEL}-answer`, take);

  return answer?.value;
}
