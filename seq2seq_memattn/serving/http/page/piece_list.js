// A sentence shown as a listbox of pieces, one of which can be active.

import { element, setShare } from "./dom.js";

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

export class PieceList {
  /**
   * @param {HTMLElement} list The listbox.
   * @param {object} on Callbacks. pointed(index or null): the mouse is on a piece, or has left;
   *     toggled(index): a piece was clicked or tapped; chosen(index): a piece was reached with the
   *     keyboard; dropped(): Escape was pressed.
   */
  constructor(list, on) {
    this.list = list;
    this.on = on;
    list.addEventListener("keydown", (event) => this.onKey(event));
    list.addEventListener("focusin", (event) => this.onFocus(event));
    // Not pointerover, which also fires when the page scrolls under a resting mouse.
    list.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") on.pointed(this.indexOf(event.target));
    });
    list.addEventListener("pointerleave", () => on.pointed(null));
    list.addEventListener("click", (event) => {
      const index = this.indexOf(event.target);
      if (index !== null) on.toggled(index);
    });
  }

  /** Replaces the pieces; takes an array of results of `shownPiece`. */
  setPieces(pieces, language) {
    this.options = pieces.map((piece, index) =>
      element("span", {
        role: "option",
        class: classesOf(piece, index),
        lang: piece.isEnd ? undefined : language || undefined,
        tabindex: index ? "-1" : "0", // one tab stop for the list; arrow keys move inside
        "aria-selected": "false",
      }, piece.text));
    this.list.replaceChildren(...this.options);
  }

  /** Sets the texts for screen readers: each piece and what it attends to. */
  setDescriptions(descriptions) {
    this.options.forEach((option, i) => option.setAttribute("aria-label", descriptions[i]));
  }

  /** Lights pieces by shares in [0, 1]; null turns all lights off. */
  light(shares) {
    this.options.forEach((option, i) => setShare(option, shares ? shares[i] : 0));
  }

  /** Marks the active piece and the selected piece; null for none. */
  mark(active, selected) {
    this.options.forEach((option, i) => {
      option.classList.toggle("is-active", i === active);
      option.setAttribute("aria-selected", String(i === selected));
    });
  }

  /** Scrolls the list (not the page) to a piece that is out of view. */
  reveal(index) {
    const box = this.list.getBoundingClientRect();
    const piece = this.options[index].getBoundingClientRect();
    if (piece.top >= box.top && piece.bottom <= box.bottom) return;
    this.list.scrollTop += piece.top - box.top - (box.height - piece.height) / 2;
  }

  indexOf(target) {
    const index = this.options.indexOf(target);
    return index < 0 ? null : index;
  }

  onFocus(event) {
    const index = this.indexOf(event.target);
    if (index === null) return;
    this.options.forEach((option, i) => option.setAttribute("tabindex", i === index ? "0" : "-1"));
    if (event.target.matches(":focus-visible")) this.on.chosen(index);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return this.on.dropped();
    const last = this.options.length - 1;
    const at = this.indexOf(event.target);
    const to = { Home: 0, End: last }[event.key] ?? at + this.step(event.key);
    if (!Number.isInteger(to)) return;
    event.preventDefault();
    const index = Math.min(Math.max(to, 0), last);
    this.options[index].focus();
    this.on.chosen(index); // after a click, the browser does not report :focus-visible
  }

  /** How far an arrow key moves, undefined for other keys; reversed for right-to-left text. */
  step(key) {
    const isTurned = /Left|Right/.test(key) && getComputedStyle(this.list).direction === "rtl";
    return isTurned ? -STEPS[key] : STEPS[key];
  }
}

function classesOf(piece, index) {
  const classes = ["piece"];
  if (piece.isEnd) classes.push("is-end");
  if (piece.continues && index) classes.push("continues");
  return classes.join(" ");
}
