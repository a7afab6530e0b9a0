// The form of the page: choose a model, enter a text, translate it.

import { RequestError, loadModels, translate } from "./api.js";
import { AttentionView } from "./attention_view.js";
import { byId, element } from "./dom.js";
import { attentionName, languageName, timeText } from "./names.js";
import { showTranslations } from "./translations.js";

const UNAUTHORISED = 401;
const BUSY = 503;

const form = byId("form");
const field = byId("text");
const button = byId("translate");
const answer = byId("answer");
const attention = new AttentionView();

let models = [];
let model = null;
let running = null; // AbortController of the request under way; a newer request aborts an older one
let retryTimer = null;
let token = ""; // kept only here, so it disappears with the page

async function start() {
  byId("modifier").textContent = /Mac|iPhone|iPad/.test(navigator.platform) ? "Cmd" : "Ctrl";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
  });
  byId("example").addEventListener("click", () => {
    field.value = model.export.example;
    submit();
  });
  await whileBusy(refreshModels);
}

/** Translates the text of the field; loads the models first if none are loaded. */
function submit() {
  if (!byId("token-row").hidden) token = byId("token").value.trim();
  if (model && !field.value.trim()) {
    showError("Type something to translate first.");
    field.setAttribute("aria-invalid", "true");
    field.focus();
    return;
  }
  whileBusy(async (signal) => {
    if (!model) await refreshModels();
    if (field.value.trim()) await translateField(signal);
  });
}

async function translateField(signal) {
  let asked = model;
  // Models know no line breaks: they learned from single lines.
  const text = field.value.replace(/\s*[\r\n]+\s*/g, " ").trim();
  const result = await translate(asked, text, token, signal);
  byId("token-row").hidden = true;
  if (result.version && result.version !== String(asked.version)) {
    await refreshModels(); // a new version may have another attention and other pieces
    if (signal.aborted) return;
    asked = models.find((each) => each.name === asked.name) ?? asked;
    asked.version = result.version;
    showFacts();
  }
  answer.hidden = false; // shown before it is filled: the map takes its size from the page
  showTranslations(result.prediction, asked.export);
  attention.show(result.prediction, asked.export);
  byId("status").textContent = timing(result, asked);
}

function timing(result, asked) {
  const inModel = result.modelMs === null ? "" : `, of which ${timeText(result.modelMs)} in the model`;
  return `Translated in ${timeText(result.totalMs)}${inModel} (${asked.name}, version ${asked.version}).`;
}

/** Runs a request to the server; an older request is aborted and its answer is never shown. */
async function whileBusy(work) {
  running?.abort();
  const controller = new AbortController();
  running = controller;
  const hadFocus = document.activeElement === button;
  setBusy(true);
  try {
    await work(controller.signal);
  } catch (error) {
    if (running === controller) showFailure(error);
  }
  if (running !== controller) return;
  running = null;
  setBusy(false);
  if (hadFocus && document.activeElement === document.body) button.focus();
}

function setBusy(isBusy) {
  button.disabled = isBusy;
  button.textContent = isBusy && model ? "Translating…" : "Translate";
  answer.setAttribute("aria-busy", String(isBusy));
  if (!isBusy) return;
  byId("status").textContent = "";
  showError("");
}

async function refreshModels() {
  models = await loadModels(token);
  byId("token-row").hidden = true;
  byId("models").hidden = models.length < 2;
  byId("model-choices").replaceChildren(...models.map(choice));
  chooseModel(models.find((each) => each.name === model?.name) ?? models[0]);
}

function choice(each) {
  const input = element("input", { type: "radio", name: "model", value: each.name });
  input.addEventListener("change", () => {
    chooseModel(each);
    if (field.value.trim()) submit();
  });
  return element("label", { class: "model-choice" }, input,
    element("span", { class: "model-name" }, each.name),
    element("span", { class: "model-attention" }, attentionName(each.export)));
}

function chooseModel(chosen) {
  model = chosen;
  const input = form.querySelector(`input[value="${CSS.escape(model.name)}"]`);
  if (input) input.checked = true;
  const { kind, source_language: language, example } = model.export;
  const isSymbols = kind === "symbols";
  byId("text-label").textContent = isSymbols ? "Symbols, with spaces between them"
    : language ? `Text in ${languageName(language)}` : "Text";
  field.lang = language;
  field.spellcheck = !isSymbols;
  byId("example").hidden = !example;
  byId("example").textContent = `Try \u201c${example}\u201d`;
  showFacts();
}

function showFacts() {
  const { source_language: source, target_language: target } = model.export;
  const facts = [
    ["Model", `${model.name}, version ${model.version}`],
    ["Attention", attentionName(model.export)],
    ["Languages", source && target ? `${languageName(source)} to ${languageName(target)}` : ""],
    ["Beam", model.export.beam_size ?? ""],
  ];
  byId("facts").replaceChildren(...facts.filter(([, value]) => value !== "").map(([name, value]) =>
    element("span", { class: "fact" }, element("span", { class: "fact-name" }, name), ` ${value}`)));
}

function showFailure(error) {
  answer.hidden = true; // it belongs to another text or another model
  if (!(error instanceof RequestError)) console.error(error);
  if (error.status === UNAUTHORISED) return askForToken();
  if (error.status === BUSY) return askForPatience(error.retryAfter);
  const isRefusal = error.status >= 400 && error.status < 500;
  return showError(isRefusal ? `The server refused the request: ${error.message}` : error.message);
}

function askForToken() {
  const wasAsked = !byId("token-row").hidden;
  byId("token-row").hidden = false;
  showError(wasAsked && token ? "The server does not accept this access token."
    : "This server asks for an access token. Enter it above.");
  byId("token").focus();
}

function askForPatience(seconds) {
  showError(seconds === null ? "The server is busy. Try again in a moment."
    : `The server is busy. Try again in ${seconds === 1 ? "one second" : `${seconds} seconds`}.`);
  if (seconds === null) return;
  retryTimer = setTimeout(() => showError("The server was busy. Try again now."), 1000 * seconds);
}

function showError(message) {
  clearTimeout(retryTimer);
  field.removeAttribute("aria-invalid");
  byId("error").textContent = message;
}

start();
