/** The server's answers. Every failure is an Error whose message is one sentence for people. */

import { askKey, keyHeaders } from "./key.js";

const PATIENCE = 20; // times that a full server is asked again

class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

async function ask(path, options, patience = PATIENCE) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options?.headers, ...keyHeaders() } });
  } catch {
    throw new Refusal("The server does not answer; is geocalib serve still running?", 0);
  }
  if (response.status === 429 && patience > 0) {
    await wait(Number(response.headers.get("Retry-After")) || 1);
    return ask(path, options, patience - 1);
  }
  if (response.status === 401 && (await askKey())) return ask(path, options, patience);
  if (!response.ok) throw new Refusal(await reasonOf(response), response.status);
  return response;
}

async function reasonOf(response) {
  const said = await response.json().catch(() => null);
  const reason = said?.error ?? said?.detail;
  return typeof reason === "string" ? reason : `The server answered ${response.status}.`;
}

const json = (body) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

function form(file, request) {
  const body = new FormData();
  body.append("image", file, file.name);
  body.append("request", JSON.stringify(request));
  return { method: "POST", body };
}

/** The record of one photo. */
export async function calibrate(file, request) {
  const answer = await (await ask("v1/calibrate", form(file, request))).json();
  return answer.results[0];
}

/** Records fitted anew, without the network; one for each id. */
export async function refit(ids, request) {
  return (await (await ask("v1/refit", json({ ids, ...request }))).json()).results;
}

/** What the network saw: a coarse grid of numbers, and the segments. */
export const fields = async (id) => (await ask(`v1/fields/${id}`)).json();

/** A picture as a Blob. kind: photo, overlay, upright, rectified or undistorted. */
export const render = async (file, record, kind) =>
  (await ask("v1/render", form(file, { record, kind }))).blob();

/** A file of records in a format: { blob, name }. */
export async function exported(records, format) {
  const response = await ask("v1/export", json({ records, format }));
  const told = /filename="?([^";]+)/.exec(response.headers.get("Content-Disposition") ?? "");
  return { blob: await response.blob(), name: told?.[1] ?? `calibrations.${format}` };
}
