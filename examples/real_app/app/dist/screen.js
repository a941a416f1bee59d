// What all parts of the app use: the screen's texts, and the settings.

export function show(name, text) {
  document.querySelector(`[data-testid=${name}]`).textContent = text;
}

export function onTap(name, action) {
  document.querySelector(`[data-testid=${name}]`).addEventListener('click', action);
}

// A native build has its settings in the app config. Here they are launch arguments, which only the first start has.
for (const argument of window.launchArguments ?? []) {
  const [, name, value] = argument.match(/^--(\w+)=(.*)$/);
  localStorage.setItem(name, value);
}

export const setting = (name) => localStorage.getItem(name);
