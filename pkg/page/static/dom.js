// Small helpers to make elements. Nothing is ever made of HTML text.

/** el makes an element; properties that begin with "on" are listeners. */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** arrowKeys lets the arrow keys walk through the buttons of a container, which
 * are one stop of the tab key together. */
export function arrowKeys(container, selector) {
  const all = () => [...container.querySelectorAll(selector)];
  const chosen = container.querySelector(`${selector}[aria-pressed="true"], ${selector}[aria-selected="true"]`);
  for (const button of all()) button.tabIndex = -1;
  const first = chosen ?? all()[0];
  if (first) first.tabIndex = 0;
  container.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const buttons = all();
    const at = buttons.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = buttons[(at + step + buttons.length) % buttons.length];
    buttons[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

/** duration tells microseconds in the unit that fits. */
export function duration(microseconds) {
  if (microseconds === undefined || microseconds === null) return "";
  if (microseconds < 1000) return `${microseconds} µs`;
  if (microseconds < 1e6) return `${(microseconds / 1000).toPrecision(3)} ms`;
  return `${(microseconds / 1e6).toPrecision(3)} s`;
}
