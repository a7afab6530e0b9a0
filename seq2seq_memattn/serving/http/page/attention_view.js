// The attention of the best translation: keeps pieces, map, slots and table in step.

import { byId, element, isolated } from "./dom.js";
import { HeatMap } from "./heat_map.js";
import { attentionName, numSlots, shownPiece, weightText } from "./names.js";
import { PieceList } from "./piece_list.js";
import { SlotChooser, slotName } from "./slot_chooser.js";
import { alignmentOf, highestOf, largest, slotMap } from "./weights.js";

const NUM_STRONGEST = 3;
const NOTHING = { target: null, source: null };
// A share of the map's highest value. If all weights of a piece are smaller, its partners are lit
// only weakly.
const SMALLEST_FULL_LIGHT = 0.2;
const HELP = "Point at a piece, tap it, or move through the pieces with the arrow keys. "
  + "The pieces that it attends to or that attend to it light up.";

export class AttentionView {
  constructor() {
    this.sourceList = this.pieceList("source", "source-pieces");
    this.targetList = this.pieceList("target", "target-pieces");
    this.heatMap = new HeatMap(byId("map-grid"), (target = null, source = null, isChosen) =>
      isChosen ? this.toggle({ target, source }) : this.point({ target, source }));
    this.slots = new SlotChooser(() => this.showMap());
  }

  pieceList(side, id) {
    return new PieceList(byId(id), {
      pointed: (index) => this.point({ ...NOTHING, [side]: index }),
      toggled: (index) => this.toggle({ ...NOTHING, [side]: index }),
      chosen: (index) => this.choose({ ...NOTHING, [side]: index }),
      dropped: () => this.choose(NOTHING),
    });
  }

  /**
   * Shows the attention of a translation, or the reason why there is none.
   *
   * @param {object} prediction One of the server's predictions.
   * @param {object} exported The model's export.json.
   */
  show(prediction, exported) {
    const alignment = alignmentOf(prediction);
    byId("attention").hidden = !alignment;
    byId("attention-about").textContent = alignment
      ? explanation(exported) : reasonForNone(prediction);
    if (!alignment) return;
    Object.assign(this, alignment);
    this.source = this.sourcePieces.map((piece) => shownPiece(piece, exported.kind));
    const targetKind = exported.target_kind || exported.kind; // older exports have one kind
    this.target = this.targetPieces.map((piece) => shownPiece(piece, targetKind));
    this.sourceList.setPieces(this.source, exported.source_language);
    this.targetList.setPieces(this.target, exported.target_language);
    this.heatMap.setPieces(this.source, this.target);
    this.pointed = NOTHING;
    this.chosen = NOTHING;
    this.slots.setScores(this.alpha, this.beta);
    this.showMap();
  }

  /** Shows the map of all slots, or of the chosen slot. */
  showMap() {
    const slot = this.slots.chosen;
    this.map = slot === null ? this.alignments : slotMap(this.alpha, this.beta, slot);
    this.byColumn = this.source.map((_, j) => this.map.map((row) => row[j]));
    this.highest = highestOf(this.map);
    byId("map-caption").textContent = this.caption(slot);
    byId("highest").textContent = `${this.highest.toPrecision(2)} (highest here)`;
    const size = `${this.target.length} target by ${this.source.length} source pieces`;
    this.heatMap.setMap(this.map, this.highest,
      `Heat map of ${size}. The table below has its largest weights.`);
    this.describe();
    this.update();
  }

  caption(slot) {
    const what = !this.beta ? "Alignment" : slot === null ? "All slots, combined"
      : `${slotName(slot)} alone`;
    return `${what}: target pieces downwards, source pieces to the right`;
  }

  /** Lists each piece's strongest partners, for screen readers and in the table. */
  describe() {
    const strongest = (weights, pieces) => largest(weights, NUM_STRONGEST)
      .map((k) => `${pieces[k].text} ${weightText(weights[k])}`).join(", ");
    this.targetList.setDescriptions(this.target.map((piece, i) =>
      `${piece.text}: from ${strongest(this.map[i], this.source)}`));
    this.sourceList.setDescriptions(this.source.map((piece, j) =>
      `${piece.text}: to ${strongest(this.byColumn[j], this.target)}`));
    byId("table-rows").replaceChildren(...this.target.map((piece, i) =>
      element("tr", {},
        element("th", { scope: "row" }, isolated(piece.text)),
        element("td", {}, ...strongestParts(this.map[i], this.source)))));
  }

  /** Shows what the mouse points at; this hides the choice for the moment but keeps it. */
  point(where) {
    if (isSame(where, this.pointed)) return;
    this.pointed = where;
    this.update();
  }

  /** Chooses what was clicked or tapped; a second click drops the choice. */
  toggle(where) {
    this.choose(isSame(where, this.chosen) ? NOTHING : where);
  }

  choose(where) {
    this.chosen = where;
    this.pointed = NOTHING;
    this.update();
    this.reveal();
  }

  /** Scrolls the chosen piece and its strongest partner into view. */
  reveal() {
    const { target, source } = this.chosen;
    if (target === null && source === null) return;
    const row = target ?? largest(this.byColumn[source], 1)[0];
    const column = source ?? largest(this.map[target], 1)[0];
    this.targetList.reveal(row);
    this.sourceList.reveal(column);
    this.heatMap.reveal(row, column);
  }

  update() {
    const isPointed = this.pointed.target !== null || this.pointed.source !== null;
    const { target, source } = isPointed ? this.pointed : this.chosen;
    this.targetList.mark(target, this.chosen.target);
    this.sourceList.mark(source, this.chosen.source);
    this.sourceList.light(target === null ? null : this.light(this.map[target]));
    this.targetList.light(
      target !== null || source === null ? null : this.light(this.byColumn[source]));
    this.heatMap.mark(target, source);
    this.slots.show(target, source, (this.target[target] ?? this.source[source])?.text);
    byId("readout").replaceChildren(...this.readout(target, source));
  }

  light(weights) {
    const full = Math.max(...weights, SMALLEST_FULL_LIGHT * this.highest) || 1;
    return weights.map((weight) => weight / full);
  }

  readout(target, source) {
    if (target === null && source === null) return [HELP];
    if (target === null) {
      const to = strongestParts(this.byColumn[source], this.target);
      return [strong(this.source[source].text), " to ", ...to];
    }
    if (source === null) {
      const from = strongestParts(this.map[target], this.source);
      return [strong(this.target[target].text), " from ", ...from];
    }
    return [strong(this.target[target].text), " from ",
      isolated(this.source[source].text), ` ${weightText(this.map[target][source])}`];
  }
}

function isSame(one, other) {
  return one.target === other.target && one.source === other.source;
}

function strong(text) {
  return element("strong", {}, isolated(text));
}

/** The pieces with the largest weights and these weights, as parts of a line. */
function strongestParts(weights, pieces) {
  return largest(weights, NUM_STRONGEST).flatMap((k, place) => [
    place ? ", " : "", isolated(pieces[k].text), ` ${weightText(weights[k])}`,
  ]);
}

function explanation(exported) {
  const slots = numSlots(exported.attention);
  if (!slots) {
    const name = exported.attention ? ` (${attentionName(exported)})` : "";
    return `How strongly the attention${name} weights each source piece for each target piece.`;
  }
  return `K-memory attention stores the source in ${slots} slots while reading it. Each target `
    + "piece then reads the slots and does not look at the source again. The map "
    + "multiplies how strongly a target piece reads a slot by how strongly the slot stores a "
    + "source piece, and sums the products over the slots.";
}

function reasonForNone(prediction) {
  if (!prediction.alignments) {
    return "This model was exported without its alignments, so there is no map.";
  }
  return prediction.target_pieces[0]
    ? "The encoder has no output for each piece of the text, so there is no map."
    : "The best translation has no pieces, so there is no map.";
}
