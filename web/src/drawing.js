/** Lines that a person draws on the photo that is looked at: each is one more observation, and the
 * answer follows while the hand moves. */

import { Camera } from "./camera.js";
import { circle } from "./curves.js";
import {
  checksOf,
  distanceTo,
  endsOf,
  kindOfWorld,
  lineOf,
  numberOf,
  rulerAt,
  without,
} from "./lines.js";
import { levelFrame } from "./vectors.js";
import { drawnWords, withKnown } from "./words.js";

const element = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const REACH = { mouse: 10, pen: 14, touch: 24 }; // of a hand, on the screen
const SHORTEST = 12; // on the screen: what is shorter is a tap
const STEP = 4; // of an arrow key, on the screen
const FINE = 0.25; // of a step, with the shift key
const HANDLE = 6;
const LETTER = 13;
const INSET = 0.06; // of the picture, from its border to where a horizon is taken hold of
const LOUPE = 4; // times as large as on the screen
const HINTS = {
  up: () => "Drag along an edge that stands upright, such as the corner of a house.",
  level: () => "Drag along a level edge. One tells nothing alone: draw another, parallel to it.",
  parallel: (to) => `Drag along an edge that is parallel to line ${to}; tap another to choose it.`,
  horizon: (_, there) =>
    there ? "Drag the horizon, or one of its ends." : "Drag from one end of the horizon to the other.",
  ruler: () => "Drag along a known length on the ground or upright on it, for the scale.",
};

export class Drawing {
  constructor(album) {
    this.album = album;
    this.frame = element("stage");
    this.layer = element("drawn");
    this.loupe = element("loupe");
    this.kinds = [...document.querySelectorAll("input[name=kind]")];
    this.metres = element("ruler-metres");
    this.upright = element("ruler-up");
    this.on = false;
    this.photo = null;
    this.selected = null; // the number of a line, from 0
    this.end = 1; // of it, that arrow keys move
    this.held = null; // what a hand does
    this.pushed = false; // whether the last thing done was an arrow key
    element("draw").addEventListener("click", () => this.#turn(!this.on));
    element("undo-line").addEventListener("click", () => this.#undo());
    element("delete-line").addEventListener("click", () => this.remove(this.selected));
    for (const input of this.kinds) input.addEventListener("change", () => this.#render());
    for (const input of [this.metres, this.upright]) {
      input.addEventListener("change", () => this.#measure());
    }
    new ResizeObserver(() => this.#render()).observe(this.frame);
    this.#listen();
  }

  /** allowed: whether the photo is shown as it is, for lines to be drawn on it. */
  show(photo, allowed) {
    if (photo !== this.photo) Object.assign(this, { photo, selected: null, held: null });
    const { shared } = this.album;
    this.visible = allowed && Boolean(photo?.record) && !shared;
    element("draw").hidden = !allowed;
    element("draw").disabled = !this.visible;
    element("draw").title = shared ? "Lines are drawn on a photo by itself, not on all of one camera" : "";
    this.#render();
  }

  remove(index) {
    if (!this.lines[index]) return;
    this.#change(without(this.lines, index));
    this.selected = null;
    this.#render();
  }

  get lines() {
    return this.photo?.drawn ?? [];
  }

  get kind() {
    return this.kinds.find((input) => input.checked).value;
  }

  get #active() {
    return this.on && this.visible;
  }

  #turn(on) {
    this.on = on;
    this.selected = null;
    this.#render();
    if (on) this.frame.focus({ preventScroll: true });
  }

  /** Other lines, and those before them kept for who wants them back. */
  #change(lines, before = this.lines) {
    this.photo.undo.push(before);
    this.pushed = false;
    this.album.draw(this.photo, lines);
  }

  #undo() {
    const before = this.photo.undo.pop();
    if (!before) return;
    this.selected = null;
    this.pushed = false;
    this.album.draw(this.photo, before);
  }

  /** The number, from 1, of the line that the next one is parallel to; 0: there is none. */
  get #reference() {
    const edge = ({ kind }) => kind !== "horizon" && kind !== "ruler";
    if (this.lines[this.selected] && edge(this.lines[this.selected])) return this.selected + 1;
    return this.lines.findLastIndex(edge) + 1;
  }

  /** The horizon as the answer has it, to be taken hold of; null where there is none to take. */
  get #ghost() {
    const { photo } = this;
    if (this.kind !== "horizon" || this.lines.some(({ kind }) => kind === "horizon")) return null;
    const record = withKnown(photo.record, photo.known);
    const camera = new Camera(record);
    const [right, margin] = [levelFrame(record.gravity).right, INSET * camera.width];
    const inside = ([x, y]) =>
      x > margin && x < camera.width - margin && y > margin && y < camera.height - margin;
    const along = ([x, y]) => x * right[0] + y * right[1];
    const points = circle(camera, record.gravity, 0).flat().filter(inside);
    if (points.length < 2) return null;
    points.sort((a, b) => along(a) - along(b));
    return lineOf([points[0], points.at(-1)], { kind: "horizon" });
  }

  /** Pixels of the photo in one of the screen. */
  get #unit() {
    return this.photo.record.width / Math.max(1, this.layer.getBoundingClientRect().width);
  }

  #pixelAt({ clientX, clientY }) {
    const box = this.layer.getBoundingClientRect();
    return this.#inside([(clientX - box.left) * this.#unit, (clientY - box.top) * this.#unit]);
  }

  #inside([x, y]) {
    const { width, height } = this.photo.record;
    return [Math.min(width, Math.max(0, x)), Math.min(height, Math.max(0, y))];
  }

  /** What a hand there takes hold of: a line, and one of its ends or both; null: nothing. */
  #gripAt([x, y], reach) {
    const ghost = this.#ghost;
    const lines = ghost ? [...this.lines, ghost] : this.lines;
    const horizon = this.kind === "horizon" ? lines.findIndex(({ kind }) => kind === "horizon") : -1;
    // A horizon is moved by whatever of the picture is taken hold of, and turned by its ends.
    let best = horizon < 0 ? null : { away: reach, index: horizon, ends: [0, 1], lines };
    lines.forEach((line, index) => {
      const parts = endsOf(line).map(([a, b], end) => [Math.hypot(x - a, y - b), [end]]);
      // Whoever means an end is nearer to it than to the line.
      parts.push([distanceTo(line, [x, y]) + reach / 3, [0, 1]]);
      for (const [away, ends] of parts) {
        if (away < reach && !(best?.away <= away)) best = { away, index, ends, lines };
      }
    });
    return best;
  }

  #listen() {
    const { frame } = this;
    frame.addEventListener("pointerdown", (event) => this.#press(event));
    frame.addEventListener("pointermove", (event) => this.#move(event));
    frame.addEventListener("pointerup", () => this.#release());
    frame.addEventListener("pointercancel", () => this.#cancel());
    frame.addEventListener("keydown", (event) => this.#key(event));
  }

  #press(event) {
    if (!this.#active || event.button !== 0) return;
    if (this.held) {
      this.#cancel(); // A second finger: the picture is pinched.
      return;
    }
    const from = this.#pixelAt(event);
    const reach = (REACH[event.pointerType] ?? REACH.mouse) * this.#unit;
    const grip = this.#gripAt(from, reach);
    this.held = { from, grip, before: this.lines, moved: false };
    this.frame.setPointerCapture(event.pointerId);
    event.preventDefault();
    this.frame.focus({ preventScroll: true });
  }

  #move(event) {
    if (!this.#active) return;
    const pixel = this.#pixelAt(event);
    if (!this.held) {
      const reach = REACH.mouse * this.#unit;
      const grip = this.#gripAt(pixel, reach);
      this.frame.dataset.grip = grip ? (grip.ends.length === 1 ? "end" : "line") : "draw";
      return;
    }
    const { from, grip, before } = this.held;
    const way = [pixel[0] - from[0], pixel[1] - from[1]];
    const least = (grip ? 2 : SHORTEST) * this.#unit;
    if (!this.held.moved && Math.hypot(...way) < least) return;
    this.held.moved = true;
    if (grip) {
      const line = grip.lines[grip.index];
      const ends = endsOf(line).map(([x, y], end) =>
        grip.ends.includes(end) ? this.#inside([x + way[0], y + way[1]]) : [x, y],
      );
      if (Math.hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]) < SHORTEST * this.#unit) return;
      this.#replace(grip.lines.with(grip.index, lineOf(ends, line)), grip.index);
      this.held.eye = grip.ends.length === 1 ? ends[grip.ends[0]] : null;
    } else {
      // There is one ruler: another takes its place.
      const other = this.kind === "ruler" ? rulerAt(before) : -1;
      const kept = other < 0 ? before : without(before, other);
      this.#replace([...kept, this.#made([from, pixel])], kept.length);
      this.held.eye = pixel;
    }
    this.#look();
  }

  #made(ends) {
    const to = this.held?.to ?? this.#reference;
    return lineOf(ends, { kind: this.kind, to, ...this.#length });
  }

  /** Of a ruler. */
  get #length() {
    return { metres: this.metres.valueAsNumber, along: this.upright.checked ? "up" : "ground" };
  }

  /** Another length for the ruler that there is. */
  #measure() {
    if (!this.metres.checkValidity() || !(this.metres.valueAsNumber > 0)) this.metres.value = "1";
    const at = rulerAt(this.lines);
    if (at >= 0) this.#change(this.lines.with(at, { ...this.lines[at], ...this.#length }));
  }

  #replace(lines, selected) {
    this.held.to ??= this.#reference;
    this.selected = selected;
    this.album.draw(this.photo, lines);
  }

  #release() {
    if (!this.held) return;
    const { grip, before, moved } = this.held;
    this.held = null;
    if (moved) {
      this.#change(this.lines, before);
    } else {
      // The horizon that the answer has is no line of theirs yet.
      this.selected = this.lines[grip?.index] ? grip.index : null;
    }
    this.#look();
    this.#render();
  }

  #cancel() {
    if (!this.held) return;
    const { before, moved } = this.held;
    this.held = null;
    if (moved) this.album.draw(this.photo, before);
    this.#look();
    this.#render();
  }

  #key(event) {
    if (event.target !== this.frame || !this.#active || event.altKey) return;
    const step = (event.shiftKey ? FINE : 1) * STEP * this.#unit;
    const actions = {
      Enter: () => this.#add(),
      " ": () => (this.end = 1 - this.end),
      Delete: () => this.remove(this.selected),
      Backspace: () => this.remove(this.selected),
      Escape: () => (this.held ? this.#cancel() : this.#turn(false)),
      ArrowLeft: () => this.#push(-step, 0),
      ArrowRight: () => this.#push(step, 0),
      ArrowUp: () => this.#push(0, -step),
      ArrowDown: () => this.#push(0, step),
    };
    const chord = event.ctrlKey || event.metaKey;
    const action = chord ? event.key === "z" && (() => this.#undo()) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
    this.#render();
  }

  /** A line in the middle of the picture, for arrow keys to move. */
  #add() {
    const { width, height } = this.photo.record;
    const upright = this.kind === "up";
    const [x, y] = upright ? [0, 0.15 * height] : [0.15 * width, 0];
    const at = (this.kind === "ruler" ? 0.85 : 0.5) * height; // The ground is below.
    const middle = [[width / 2 - x, at - y], [width / 2 + x, at + y]];
    const same = this.lines.findIndex(({ kind }) => kind === this.kind);
    if ((this.kind === "horizon" || this.kind === "ruler") && same >= 0) {
      this.selected = same; // There is one.
      return;
    }
    const made = this.#ghost ?? this.#made(middle);
    this.selected = this.lines.length;
    this.#change([...this.lines, made]);
  }

  /** Moves an end of the line that is selected. */
  #push(dx, dy) {
    const line = this.lines[this.selected];
    if (!line) return;
    const ends = endsOf(line).map(([x, y], end) =>
      end === this.end ? this.#inside([x + dx, y + dy]) : [x, y],
    );
    if (Math.hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]) < 1) return;
    const lines = this.lines.with(this.selected, lineOf(ends, line));
    if (this.pushed) this.album.draw(this.photo, lines);
    else this.#change(lines);
    this.pushed = true;
  }

  #render() {
    const active = Boolean(this.#active);
    this.frame.classList.toggle("drawing", active);
    if (!active) delete this.frame.dataset.grip;
    element("draw").setAttribute("aria-pressed", String(active));
    element("pens").hidden = !active;
    this.frame.setAttribute("aria-describedby", active ? "draw-help" : "stage-help");
    this.#list();
    this.layer.toggleAttribute("hidden", !this.visible);
    if (!this.visible) return;
    const edges = this.#reference > 0;
    const parallel = this.kinds.find(({ value }) => value === "parallel");
    parallel.disabled = !edges;
    if (!edges && parallel.checked) this.kinds[0].checked = true;
    const ghost = active ? this.#ghost : null;
    const horizon = ghost ?? this.lines.find(({ kind }) => kind === "horizon");
    element("ruler-entry").hidden = this.kind !== "ruler";
    element("pen-hint").textContent = HINTS[this.kind](
      numberOf(this.lines, this.#reference - 1),
      horizon,
    );
    element("undo-line").disabled = this.photo.undo.length === 0;
    element("delete-line").disabled = !this.lines[this.selected];
    this.#draw(ghost, active);
  }

  /** The lines as text, each with what became of it. */
  #list() {
    const list = element("drawn-lines");
    const { record, drawn = [] } = this.visible ? this.photo : {};
    // An answer to other lines is still on the screen while one is drawn.
    const checks = checksOf(drawn, record?.drawn);
    const texts = drawn.map((line, i) =>
      drawnWords(line, checks[i], numberOf(drawn, i), numberOf(drawn, line.to - 1)),
    );
    if (list.dataset.texts === texts.join("\n")) return;
    list.dataset.texts = texts.join("\n");
    list.replaceChildren(
      ...texts.map((text, i) => {
        const item = document.createElement("li");
        const button = document.createElement("button");
        Object.assign(button, { type: "button", className: "free", textContent: "delete" });
        const name = drawn[i].kind === "ruler" ? "the ruler" : `line ${numberOf(drawn, i)}`;
        button.setAttribute("aria-label", `Delete ${name}`);
        button.addEventListener("click", () => this.remove(i));
        item.append(text, " ", button);
        return item;
      }),
    );
  }

  #draw(ghost, active) {
    const { record } = this.photo;
    const unit = this.#unit;
    this.layer.setAttribute("viewBox", `0 0 ${record.width} ${record.height}`);
    const checks = checksOf(this.lines, record.drawn);
    const groups = this.lines.map((line, i) => {
      const used = checks[i]?.used ?? true;
      const chosen = active && i === this.selected;
      const group = this.#group(line, kindOfWorld(this.lines, line), unit, active, chosen);
      group.classList.toggle("unused", !used);
      if (active) group.append(label(line, this.#sign(line, i), unit));
      return group;
    });
    if (ghost) groups.push(this.#group(ghost, "horizon ghost", unit, true, false));
    this.layer.replaceChildren(...groups);
  }

  /** What is written beside a line. */
  #sign({ kind, to, metres }, index) {
    if (kind === "ruler") return `${metres} m`;
    const number = `${numberOf(this.lines, index)}`;
    return kind === "parallel" ? `${number} ∥ ${numberOf(this.lines, to - 1)}` : number;
  }

  #group(line, classes, unit, handles, chosen) {
    const group = make("g", { class: `drawn-line ${classes}${chosen ? " chosen" : ""}` });
    const { x0: x1, y0: y1, x1: x2, y1: y2 } = line;
    for (const part of ["casing", "ink"]) group.append(make("line", { class: part, x1, y1, x2, y2 }));
    endsOf(line).forEach(([cx, cy], end) => {
      if (!handles) return;
      const moves = chosen && end === this.end ? "handle moves" : "handle";
      group.append(make("circle", { class: moves, cx, cy, r: HANDLE * unit }));
    });
    return group;
  }

  /** What lies under the hand, larger. */
  #look() {
    const eye = this.held?.eye;
    this.loupe.hidden = !eye || !this.photo.image;
    if (this.loupe.hidden) return;
    const { photo, loupe } = this;
    const unit = this.#unit;
    const side = loupe.clientWidth || 120;
    loupe.classList.toggle("right", eye[0] < 0.5 * photo.record.width);
    loupe.width = loupe.height = side * devicePixelRatio;
    const context = loupe.getContext("2d");
    const scale = (LOUPE / unit) * devicePixelRatio;
    context.setTransform(scale, 0, 0, scale, loupe.width / 2 - scale * eye[0], loupe.height / 2 - scale * eye[1]);
    context.drawImage(photo.image, 0, 0, photo.record.width, photo.record.height);
    const line = this.lines[this.selected];
    if (!line) return;
    context.beginPath();
    for (const [x, y] of endsOf(line)) context.lineTo(x, y);
    context.lineWidth = (1.5 * unit) / LOUPE;
    context.strokeStyle = getComputedStyle(this.layer.querySelector(".chosen")).getPropertyValue("--mark");
    context.stroke();
  }
}

function make(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** Words beside a line's middle. */
function label({ x0, y0, x1, y1 }, words, unit) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  const off = (1.1 * LETTER * unit) / length;
  const [x, y] = [(x0 + x1) / 2 + off * Math.abs(y1 - y0), (y0 + y1) / 2 - off * Math.abs(x1 - x0)];
  const text = make("text", { x, y, "font-size": LETTER * unit, "stroke-width": 3 * unit });
  text.textContent = words;
  return text;
}
