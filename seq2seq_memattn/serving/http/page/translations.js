// The list of translations found by beam search.

import { bar, byId, element } from "./dom.js";

const LONG = 400; // characters; if the best translation is this long, the others start closed

/** Shows the translations of a prediction, best first; `exported` is the model's export.json. */
export function showTranslations(prediction, exported) {
  const items = prediction.translations.map((text, place) =>
    element("li", {},
      sentence(text, exported.target_language),
      figures(prediction.log_probs[place], prediction.num_tokens[place])));
  const [best, ...others] = items;
  if (prediction.alignments) best.append(badge());
  byId("best").replaceChildren(best);
  byId("other-translations").replaceChildren(...others);
  byId("others").hidden = !others.length;
  byId("others").open = prediction.translations[0].length < LONG;
  byId("others-title").textContent = others.length === 1 ? "The next translation of the beam"
    : `The next ${others.length} translations of the beam`;
  showCut(prediction);
}

function sentence(text, language) {
  if (!text) return element("p", { class: "translation is-empty" }, "(empty)");
  return element("p", { class: "translation", lang: language || undefined, dir: "auto" }, text);
}

function figures(logProb, numTokens) {
  if (!(numTokens > 0) || !Number.isFinite(logProb)) return "";
  const mean = Math.exp(logProb / numTokens);
  const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 0 });
  return element("p", { class: "figures" },
    bar(Math.min(mean, 1)),
    element("span", { class: "value" }, `${percent.format(mean)} per piece`),
    element("span", {}, `log-probability ${logProb.toFixed(2).replace("-", "\u2212")}`),
    element("span", {}, `${numTokens} pieces`));
}

function badge() {
  return element("p", { class: "badge" }, "Its attention is shown below");
}

function showCut(prediction) {
  byId("cut").hidden = !prediction.source_is_cut;
  byId("cut").textContent = "The text is longer than this model's limit. Its end was cut off and "
    + "is not translated.";
}
