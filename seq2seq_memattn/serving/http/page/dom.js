// Small helpers for elements. Data reaches the page as text only, never as markup.

/** Returns the element of index.html with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Makes an element.
 *
 * @param {string} tag The tag name.
 * @param {object} attributes Attributes by name; those with the value undefined are left out.
 * @param {...(Node|string)} children The children; strings become text.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Isolates text, so that its direction does not change the order of the text around it. */
export function isolated(text) {
  return element("bdi", {}, text);
}

/** A bar whose length is a share in [0, 1]; a decoration beside a number with the same value. */
export function bar(share) {
  const filled = element("span", { class: "bar-filled" });
  setShare(filled, share);
  return element("span", { class: "bar", "aria-hidden": "true" }, filled);
}

/** Passes a share in [0, 1] to the style sheet. */
export function setShare(target, share) {
  target.style.setProperty("--share", share.toFixed(4));
}
