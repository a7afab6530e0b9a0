// Formats numbers, languages, attentions and pieces for the user.

const SPACE_MARK = "\u2581"; // SentencePiece's mark for a space in a piece
const VISIBLE_SPACE = "\u2423";
const END = "</s>";

/** The number of slots of "k_memory:64"; null for other attentions. */
export function numSlots(attention) {
  const found = /^k_memory:(\d+)$/.exec(attention);
  return found ? Number(found[1]) : null;
}

/** The name of an exported model's attention; older exports have no label. */
export function attentionName(exported) {
  return exported.attention_label ?? exported.attention;
}

/** "English" for "en"; the code itself if the browser does not know the language. */
export function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** A weight in [0, 1] as text; small weights become "< 0.01". */
export function weightText(weight) {
  if (!Number.isFinite(weight)) return "–";
  return weight > 0 && weight < 0.005 ? "< 0.01" : weight.toFixed(2);
}

/** A time given in milliseconds, as text in seconds or milliseconds. */
export function timeText(milliseconds) {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
}

/**
 * Formats a piece for display.
 *
 * @param {string} piece The piece in the model's vocabulary.
 * @param {string} kind The kind of the vocabulary; only subwords can continue a word.
 * @returns {object} text: the text to show; continues: whether the piece continues the word before
 *     it; isEnd: whether it is the end token.
 */
export function shownPiece(piece, kind) {
  if (piece === END) return { text: "end", continues: false, isEnd: true };
  const startsWord = kind !== "subwords" || piece.startsWith(SPACE_MARK);
  const bare = kind === "subwords" && piece.startsWith(SPACE_MARK) ? piece.slice(1) : piece;
  const text = bare.replaceAll(SPACE_MARK, VISIBLE_SPACE).replaceAll(" ", VISIBLE_SPACE);
  return { text: text || VISIBLE_SPACE, continues: !startsWord, isEnd: false };
}
