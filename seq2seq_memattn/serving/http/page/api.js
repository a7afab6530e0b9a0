// Requests to the server.

const REFUSED_BY_NETWORK = "The server did not answer. Is it still running?";

// The description of a SavedModel that this project did not export.
const NOTHING_KNOWN = {
  attention: "", source_language: "", target_language: "", kind: "", target_kind: "", example: "",
};

/** A failed request; the message is for the user. */
export class RequestError extends Error {
  /**
   * @param {string} message What went wrong, as a sentence.
   * @param {number} status HTTP status; 0 if there was no answer.
   * @param {number|null} retryAfter Seconds to wait before trying again; null if not given.
   */
  constructor(message, status, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Loads the list of served models, each with name, version, export and signatures. */
export async function loadModels(token) {
  const response = await send("models.json", { headers: authorization(token) });
  const { models } = await body(response);
  return models.map((each) => ({ ...each, export: { ...NOTHING_KNOWN, ...each.export } }));
}

/**
 * Translates one text.
 *
 * @param {object} model One of the models of `loadModels`.
 * @param {string} text Text of any length; the server refuses one that is too long.
 * @param {string} token The server's bearer token, or "".
 * @param {AbortSignal} signal Aborts the request.
 * @returns {Promise<object>} prediction: the signature's outputs; totalMs: milliseconds until the
 *     answer; modelMs: milliseconds in the model, or null; version: the version that answered, or
 *     null.
 */
export async function translate(model, text, token, signal) {
  const started = performance.now();
  const signature = model.signatures.includes("align") ? "align" : "serving_default";
  const response = await send(`v1/models/${encodeURIComponent(model.name)}:predict`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...authorization(token) },
    body: JSON.stringify({ signature_name: signature, instances: [{ text }] }),
    signal,
  });
  const { predictions } = await body(response);
  if (!predictions?.[0]?.translations) {
    const message = `${model.name} does not translate: its answer has no translations.`;
    throw new RequestError(message, response.status);
  }
  return {
    prediction: predictions[0],
    totalMs: performance.now() - started,
    modelMs: modelTime(response.headers.get("Server-Timing")),
    version: response.headers.get("X-Model-Version"),
  };
}

/** The Authorization header: the UTF-8 bytes of the token, each as one character. */
function authorization(token) {
  const bytes = String.fromCharCode(...new TextEncoder().encode(token));
  return token ? { Authorization: `Bearer ${bytes}` } : {};
}

async function send(url, options) {
  let response;
  try {
    response = await fetch(url, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(REFUSED_BY_NETWORK, 0);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function body(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError("The server's answer could not be read.", response.status);
  }
}

async function refusal(response) {
  const said = await response.json().catch(() => ({}));
  const reason = typeof said.error === "string" ? said.error : response.statusText;
  const retryAfter = seconds(response.headers.get("Retry-After"));
  return new RequestError(reason || `HTTP status ${response.status}`, response.status, retryAfter);
}

/** Seconds to wait according to a Retry-After header, a number or a date; null without one. */
function seconds(header) {
  if (!header) return null;
  const wait = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(wait) ? Math.max(1, Math.ceil(wait)) : null;
}

/** Milliseconds of the metric "model" in a Server-Timing header; null without it. */
function modelTime(header) {
  const found = /(?:^|,)\s*model\s*;[^,]*?\bdur=([\d.]+)/.exec(header ?? "");
  return found ? Number(found[1]) : null;
}
