// How numbers, languages, attentions and pieces are called for the reader.

const SPACE_MARK = "\u2581"; // what SentencePiece writes for a space, inside of pieces
const VISIBLE_SPACE = "\u2423";
const END = "</s>";

/** The number of slots of "k_memory:64"; null for other attentions. */
export function numSlots(attention) {
  const found = /^k_memory:(\d+)$/.exec(attention);
  return found ? Number(found[1]) : null;
}

/** An exported model's attention for the reader; older exports have its name alone. */
export function attentionName(exported) {
  return exported.attention_label ?? exported.attention;
}

/** "English" for "en"; the code itself where the browser knows no such language. */
export function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** A weight in [0, 1], readable where it is small. */
export function weightText(weight) {
  if (!Number.isFinite(weight)) return "–";
  return weight > 0 && weight < 0.005 ? "< 0.01" : weight.toFixed(2);
}

/** A time in milliseconds, in the unit that suits it. */
export function timeText(milliseconds) {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
}

/**
 * A piece as it is shown.
 *
 * @param {string} piece As the model has it.
 * @param {string} kind Of the vocabulary: only subwords continue a word.
 * @returns {object} text; continues: whether it belongs to the word before; isEnd.
 */
export function shownPiece(piece, kind) {
  if (piece === END) return { text: "end", continues: false, isEnd: true };
  const startsWord = kind !== "subwords" || piece.startsWith(SPACE_MARK);
  const bare = kind === "subwords" && piece.startsWith(SPACE_MARK) ? piece.slice(1) : piece;
  const text = bare.replaceAll(SPACE_MARK, VISIBLE_SPACE).replaceAll(" ", VISIBLE_SPACE);
  return { text: text || VISIBLE_SPACE, continues: !startsWord, isEnd: false };
}
