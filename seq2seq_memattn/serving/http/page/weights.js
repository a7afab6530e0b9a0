// Arithmetic on attention weights. Maps are arrays [target_length][source_length].

/**
 * Extracts the data of the attention view from a prediction of the signature "align".
 *
 * @param {object} prediction One of the server's predictions.
 * @returns {object|null} sourcePieces, targetPieces, alignments, and alpha and beta for K-memory
 *     (otherwise null), all without padding; null if there is nothing to show.
 */
export function alignmentOf(prediction) {
  if (!prediction.alignments) return null;
  // An encoder may have more or fewer outputs than the source has pieces.
  if (prediction.alignments[0]?.length !== prediction.source_pieces.length) return null;
  const sourcePieces = withoutPadding(prediction.source_pieces);
  const targetPieces = withoutPadding(prediction.target_pieces);
  if (!sourcePieces.length || !targetPieces.length) return null;
  return {
    sourcePieces,
    targetPieces,
    alignments: prediction.alignments
      .slice(0, targetPieces.length)
      .map((row) => row.slice(0, sourcePieces.length)),
    alpha: prediction.alpha?.slice(0, sourcePieces.length) ?? null,
    beta: prediction.beta?.slice(0, targetPieces.length) ?? null,
  };
}

function withoutPadding(pieces) {
  let length = pieces.length;
  while (length && pieces[length - 1] === "") length -= 1;
  return pieces.slice(0, length);
}

/** One slot's part of the alignment: its column of beta times its column of alpha. */
export function slotMap(alpha, beta, slot) {
  return beta.map((read) => alpha.map((took) => read[slot] * took[slot]));
}

/** How strongly each slot is read, on average over the target pieces. */
export function slotUse(beta) {
  return beta[0].map((_, slot) => beta.reduce((sum, read) => sum + read[slot], 0) / beta.length);
}

/** Indices of the largest values, largest first; at most `count` of them. */
export function largest(values, count = values.length) {
  const order = values.map((_, index) => index);
  order.sort((a, b) => values[b] - values[a] || a - b);
  return order.slice(0, count);
}

/** The largest value of a map, at least 0. */
export function highestOf(map) {
  return map.reduce((highest, row) => row.reduce((a, b) => Math.max(a, b), highest), 0);
}
