/** The numbers and the verdict, as text. */

import { failureWords, remarks, rows, sentence, verdict, withKnown } from "./words.js";

const element = (id) => document.getElementById(id);
const SPEAK_MS = 350;

let speaks = null;

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Fills a list with texts. */
function setItems(list, texts) {
  if ([...list.children].map((item) => item.textContent).join("\n") === texts.join("\n")) return;
  list.replaceChildren(
    ...texts.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }),
  );
}

function cell(tag, className, text) {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

/** One line per number; those that are there are renewed in place. */
function setRows(table, lines) {
  const names = lines.map(({ name }) => name).join("|");
  if (table.dataset.names !== names) {
    table.dataset.names = names;
    table.replaceChildren(
      ...lines.map(({ name }) => {
        const line = document.createElement("div");
        const value = document.createElement("dd");
        value.append(cell("span", "value", ""), " ", cell("span", "sigma", ""));
        line.append(cell("dt", "", name), value);
        return line;
      }),
    );
  }
  lines.forEach(({ value, sigma }, i) => {
    const [number, spread] = table.children[i].querySelectorAll("span");
    setText(number, value);
    setText(spread, sigma);
    spread.classList.toggle("given", sigma === "given");
  });
}

function progress(album) {
  const open = album.photos.filter(({ state }) => state === "waiting" || state === "working");
  const failed = album.photos.filter(({ state }) => state === "failed").length;
  const done = album.photos.length - open.length;
  if (open.length > 0) {
    return album.photos.length === 1
      ? "Looking at the photo …"
      : `Looking at the photos: ${done} of ${album.photos.length} done …`;
  }
  return failed > 0 ? `${failed} of ${album.photos.length} files gave no answer.` : "";
}

export function showNumbers(album) {
  const photo = album.selected;
  const record = photo?.record ? withKnown(photo.record, photo.known) : null;
  setText(element("progress"), progress(album));
  element("answer").hidden = !record;
  element("failure").hidden = photo?.state !== "failed";
  element("pending").hidden = !photo || record !== null || photo.state === "failed";
  setText(element("failure-words"), failureWords(photo?.error ?? ""));
  setText(element("photo-name"), photo?.name ?? "");
  setText(element("problem"), album.problem ?? "");
  if (!record) return;
  const says = verdict(record);
  setText(element("sentence"), sentence(record));
  element("verdict").classList.toggle("doubtful", !says.trusted);
  setText(element("verdict-words"), says.text);
  setItems(element("doubts"), says.doubts);
  setItems(element("remarks"), remarks(record));
  setRows(element("numbers"), rows(record, photo.known));
  // For screen readers: when the hand rests, not at every step of a slider.
  clearTimeout(speaks);
  speaks = setTimeout(() => {
    const text = `${sentence(record)} ${says.text} ${says.doubts.join(". ")}`.trim();
    setText(element("spoken"), text);
  }, SPEAK_MS);
}
