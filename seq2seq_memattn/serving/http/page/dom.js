// Small helpers for elements. Data reaches the page as text only, never as markup.

/** The element with an id of index.html. */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Makes an element.
 *
 * @param {string} tag Its name.
 * @param {object} attributes Its attributes by name; undefined leaves one out.
 * @param {...(Node|string)} children What it holds; strings become text.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Text on its own in bidirectional matters, so that it cannot turn what stands around it. */
export function isolated(text) {
  return element("bdi", {}, text);
}

/** A bar whose length is a share in [0, 1]; decoration beside a number that says the same. */
export function bar(share) {
  const filled = element("span", { class: "bar-filled" });
  setShare(filled, share);
  return element("span", { class: "bar", "aria-hidden": "true" }, filled);
}

/** Tells the style sheet a share in [0, 1]. */
export function setShare(target, share) {
  target.style.setProperty("--share", share.toFixed(4));
}
