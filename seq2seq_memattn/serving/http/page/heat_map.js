// The heat map: one canvas pixel for each weight, enlarged, with labels around it.

import { element } from "./dom.js";

const SMALLEST_CELL = 14; // CSS pixels; smaller labels cannot be read, so the box scrolls instead
const EASY_CELL = 24;
const LARGEST_CELL = 36;
const LETTER = /^[\p{L}\p{N}]/u; // only these get the dot that marks the rest of a word
const STOPS = ["--map-0", "--map-1", "--map-2", "--map-3", "--map-4"];

export class HeatMap {
  /**
   * @param {HTMLElement} grid The element to draw in; its parent is a box that scrolls.
   * @param {function} onPoint Called with (target, source, isChosen) when a cell is pointed at or
   *     clicked. For the label of a row, source is null; for the label of a column, target is null.
   *     Called without arguments when the pointer leaves.
   */
  constructor(grid, onPoint) {
    this.grid = grid;
    this.box = grid.parentElement;
    this.onPoint = onPoint;
    this.canvas = element("canvas", { class: "map-canvas", role: "img" });
    this.lines = element("div", { class: "map-lines" });
    this.rowBand = element("div", { class: "band row-band" });
    this.columnBand = element("div", { class: "band column-band" });
    this.cells = element("div", { class: "map-cells" });
    this.cells.append(this.canvas, this.lines, this.rowBand, this.columnBand);
    this.listen();
  }

  listen() {
    this.cells.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") this.onPoint(...this.cellAt(event), false);
    });
    this.cells.addEventListener("click", (event) => this.onPoint(...this.cellAt(event), true));
    this.cells.addEventListener("pointerleave", () => this.onPoint());
    new ResizeObserver(() => this.fit()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  /** Replaces the labels; takes arrays of results of `shownPiece`. */
  setPieces(sourcePieces, targetPieces) {
    const columns = element("div", { class: "column-labels", "aria-hidden": "true" });
    columns.append(...sourcePieces.map((piece, j) => this.label(piece, null, j)));
    const rows = element("div", { class: "row-labels", "aria-hidden": "true" });
    rows.append(...targetPieces.map((piece, i) => this.label(piece, i, null)));
    this.columns = columns;
    this.rows = rows;
    this.canvas.width = sourcePieces.length;
    this.canvas.height = targetPieces.length;
    this.grid.replaceChildren(
      element("div", { class: "map-corner" }), columns, rows, this.cells,
    );
    this.box.scrollTo(0, 0);
  }

  label(piece, target, source) {
    const made = element("span", { class: piece.isEnd ? "label is-end" : "label" },
      piece.continues && LETTER.test(piece.text) ? `\u00b7${piece.text}` : piece.text);
    made.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") this.onPoint(target, source, false);
    });
    made.addEventListener("pointerleave", () => this.onPoint());
    made.addEventListener("click", () => this.onPoint(target, source, true));
    return made;
  }

  /** Paints a map; its highest value gets the last colour of the scale. */
  setMap(map, highest, description) {
    this.map = map;
    this.highest = highest;
    this.canvas.setAttribute("aria-label", description);
    this.fit();
    this.paint();
  }

  /** Marks a row and a column; null for none. */
  mark(target, source) {
    this.rowBand.hidden = target === null;
    this.columnBand.hidden = source === null;
    this.rowBand.style.setProperty("--index", target ?? 0);
    this.columnBand.style.setProperty("--index", source ?? 0);
    for (const [labels, index] of [[this.rows, target], [this.columns, source]]) {
      labels.querySelector(".is-marked")?.classList.remove("is-marked");
      labels.children[index]?.classList.add("is-marked");
    }
  }

  /** Scrolls the box (not the page) to a cell that is out of view. */
  reveal(target, source) {
    const height = this.box.clientHeight - this.columns.offsetHeight;
    const width = this.box.clientWidth - this.rows.offsetWidth;
    this.box.scrollTop = this.scrolled(this.box.scrollTop, target, height);
    this.box.scrollLeft = this.scrolled(this.box.scrollLeft, source, width);
  }

  scrolled(from, index, visible) {
    const at = index * this.cell;
    const isShown = at >= from && at + this.cell <= from + visible;
    return isShown ? from : at - (visible - this.cell) / 2;
  }

  /** Makes the cells as large as the box allows; if they would be too small, the box scrolls. */
  fit() {
    if (!this.map || !this.box.clientWidth) return;
    const width = this.box.clientWidth - this.rows.offsetWidth;
    const height = parseFloat(getComputedStyle(this.box).maxHeight) - this.columns.offsetHeight;
    const byWidth = Math.max(Math.floor(width / this.canvas.width), SMALLEST_CELL);
    const byHeight = Math.max(Math.floor(height / this.canvas.height), EASY_CELL);
    this.cell = Math.min(LARGEST_CELL, byWidth, byHeight);
    this.grid.style.setProperty("--cell", `${this.cell}px`);
    this.canvas.style.width = `${this.cell * this.canvas.width}px`;
    this.canvas.style.height = `${this.cell * this.canvas.height}px`;
  }

  paint() {
    if (!this.map) return;
    const colours = stops(this.grid);
    const { width, height } = this.canvas;
    const image = new ImageData(width, height);
    for (let i = 0; i < height; i += 1) {
      for (let j = 0; j < width; j += 1) {
        const share = this.highest > 0 ? this.map[i][j] / this.highest : 0;
        image.data.set(mixed(colours, share), 4 * (i * width + j));
      }
    }
    this.canvas.getContext("2d").putImageData(image, 0, 0);
  }

  cellAt(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const source = Math.floor((event.clientX - left) / this.cell);
    const target = Math.floor((event.clientY - top) / this.cell);
    return [
      Math.min(Math.max(target, 0), this.canvas.height - 1),
      Math.min(Math.max(source, 0), this.canvas.width - 1),
    ];
  }
}

/** The colours of the scale, from the style sheet; they differ between light and dark mode. */
function stops(target) {
  const style = getComputedStyle(target);
  return STOPS.map((name) => {
    const hex = style.getPropertyValue(name).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
}

function mixed(colours, share) {
  const at = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const lower = Math.min(Math.floor(at), colours.length - 2);
  const part = at - lower;
  const mix = (a, b) => Math.round(a + part * (b - a));
  return [...colours[lower].map((value, c) => mix(value, colours[lower + 1][c])), 255];
}
