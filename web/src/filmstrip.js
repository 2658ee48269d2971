/** All photos at a glance: a strip to choose from, and side by side with their horizons. */

import { Camera } from "./camera.js";
import { drawOverlay, leastOnScreen } from "./overlay.js";
import { appearance, failureWords, rows, verdict, withKnown } from "./words.js";

const RIM = 4; // beside a photo of the strip, for its frame
const STATES = { waiting: "waiting", working: "looking …", ready: "", failed: "no answer" };

function make(tag, className, text = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

/** An amber dot where an answer is to be taken with care; screen readers hear so. */
function mark(item, words, record) {
  const { trusted, doubts } = verdict(record);
  item.classList.toggle("doubtful", !trusted);
  item.title = doubts.join(". ");
  if (!trusted) words.append(make("span", "visually-hidden", ", in doubt"));
}

/** Keeps one node per photo under a list, made and renewed by two functions. */
function keep(list, photos, create, renew) {
  const nodes = new Map([...list.children].map((node) => [node.dataset.key, node]));
  for (const photo of photos) {
    const node = nodes.get(photo.key) ?? create(photo);
    node.dataset.key = photo.key;
    nodes.delete(photo.key);
    // It has no width before it is there, and nothing could be drawn on it.
    if (!node.isConnected) list.append(node);
    renew(node, photo);
  }
  for (const node of nodes.values()) node.remove();
}

export class Filmstrip {
  constructor(album) {
    this.album = album;
    this.list = document.getElementById("filmstrip");
  }

  /** together: whether all are side by side already. */
  show(together) {
    const { photos } = this.album;
    const alone = photos.length === 1 && photos[0].state !== "failed";
    this.list.hidden = together || photos.length === 0 || alone;
    keep(this.list, photos, (photo) => this.#create(photo), (node, photo) => this.#renew(node, photo));
  }

  /** Moves the strip, and not the page. */
  #bringIntoView(item) {
    const [strip, box] = [this.list, item].map((node) => node.getBoundingClientRect());
    const [before, after] = [strip.left + RIM - box.left, box.right + RIM - strip.right];
    this.list.scrollLeft += Math.max(0, after) - Math.max(0, before);
  }

  #create(photo) {
    const item = make("li", "");
    const button = make("button", "thumb");
    button.type = "button";
    button.addEventListener("click", () => this.album.select(photo));
    const picture = make("img", "");
    picture.alt = "";
    picture.loading = "lazy";
    const words = make("span", "thumb-words");
    words.append(make("span", "thumb-name", photo.name), make("span", "thumb-state"));
    button.append(picture, words);
    const remove = make("button", "remove", "×");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove ${photo.name}`);
    remove.addEventListener("click", () => this.album.remove(photo));
    item.append(button, remove);
    return item;
  }

  #renew(item, photo) {
    const [button] = item.children;
    const picture = button.querySelector("img");
    if (photo.image && !picture.src) picture.src = photo.url;
    item.className = photo.state;
    const current = String(photo === this.album.selected);
    const chosen = current === "true" && button.getAttribute("aria-current") !== current;
    button.setAttribute("aria-current", current);
    if (chosen) this.#bringIntoView(item);
    const state = button.querySelector(".thumb-state");
    state.textContent = failureWords(photo.error ?? STATES[photo.state]);
    if (!photo.record) return;
    const record = withKnown(photo.record, photo.known);
    const view = rows(record, photo.known)[2];
    state.textContent = `${view.value} ${view.sigma.replace("°", "")}`;
    mark(item, state, record);
  }
}

export class SideBySide {
  constructor(album, look) {
    this.album = album;
    this.look = look;
    this.sights = new WeakMap(); // what each card shows
    this.list = document.getElementById("side-by-side");
  }

  show(what) {
    keep(
      this.list,
      this.album.photos,
      (photo) => this.#create(photo),
      (node, photo) => this.#renew(node, photo, what),
    );
  }

  #create(photo) {
    const item = make("li", "");
    const button = make("button", "card");
    button.type = "button";
    button.addEventListener("click", () => this.look(photo));
    const view = make("span", "card-picture");
    const picture = make("img", "");
    picture.alt = "";
    view.append(picture, make("canvas", "card-overlay"));
    button.append(view, make("strong", "card-name", photo.name), make("span", "card-words"));
    item.append(button);
    return item;
  }

  #renew(item, photo, what) {
    const sight = [...appearance(photo), JSON.stringify(what)];
    const before = this.sights.get(item) ?? [];
    if (sight.every((part, i) => part === before[i])) return;
    this.sights.set(item, sight);
    const picture = item.querySelector("img");
    if (photo.image && !picture.src) picture.src = photo.url;
    const words = item.querySelector(".card-words");
    item.className = photo.record ? "ready" : photo.state;
    item.classList.remove("doubtful");
    if (!photo.record) {
      words.textContent = failureWords(photo.error ?? STATES[photo.state]);
      return;
    }
    // Its card must have its width before anything is drawn on it.
    if (!picture.complete) picture.decode().then(() => this.#draw(item, photo, what), () => {});
    this.#draw(item, photo, what);
  }

  #draw(item, photo, what) {
    const record = withKnown(photo.record, photo.known);
    const [roll, pitch, , , , mm] = rows(record, photo.known).map(({ value, sigma }) =>
      // On one line each.
      `${value} ${sigma.startsWith("±") ? sigma.replace(/[^\d.]+$/, "") : sigma}`
        .trim()
        .replaceAll(" ", "\u00a0"),
    );
    const words = item.querySelector(".card-words");
    words.textContent = `Roll\u00a0${roll}, pitch\u00a0${pitch}, ${mm}`;
    mark(item, words, record);
    const scale = (item.querySelector("img").clientWidth * devicePixelRatio) / record.width;
    const size = [record.width, record.height].map((side) => Math.round(scale * side));
    if (!size[0]) return;
    const canvas = item.querySelector("canvas");
    Object.assign(canvas, { width: size[0], height: size[1] });
    const camera = new Camera(record).resized(...size);
    drawOverlay(canvas.getContext("2d"), camera, record.gravity, what, photo.fields, leastOnScreen());
  }
}
