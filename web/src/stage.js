/** The photo that is looked at, with all that is drawn over it. */

import { groundAt, LEAST_SLOPE, pixelOf, placeBox } from "./box.js";
import { Camera } from "./camera.js";
import { Comparison } from "./compare.js";
import { drawOverlay, leastOnScreen } from "./overlay.js";
import { RING } from "./scene.js";
import { radians } from "./vectors.js";
import { obstacle } from "./warp.js";
import { appearance, boxWords, withKnown } from "./words.js";

const element = (id) => document.getElementById(id);
const FINE = 0.25; // of a step, with the shift key
const TURN_STEP = radians(5);
const FLATTEST = 0.72; // height of a comparison, by its width
const ANNOUNCE_MS = 400;

export class Stage {
  /** scene: for the box; null where there is no WebGL. */
  constructor(scene) {
    this.frame = element("stage");
    this.room = element("stage-room");
    this.overlay = element("overlay");
    this.context = this.overlay.getContext("2d");
    this.picture = element("picture");
    this.wipe = element("wipe");
    this.scene = scene;
    this.comparison = null;
    this.grabbed = null;
    this.hovers = false;
    this.photo = null;
    this.drawn = null; // the box as it was drawn last, in device pixels
    this.view = "photo";
    this.show = {};
    this.waits = false;
    new ResizeObserver(() => this.redraw()).observe(this.room);
    this.wipe.addEventListener("input", () => this.redraw());
    this.#listen();
  }

  /** Soon, and once per frame of the screen. */
  redraw() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.#draw();
    });
  }

  /** view: photo, upright, rectified or undistorted; show: what is switched on. */
  set(photo, view, show) {
    if (!photo?.url) this.picture.removeAttribute("src");
    else if (this.picture.src !== photo.url) this.picture.src = photo.url;
    Object.assign(this, { photo, view, show });
    // Of forty photos that get their answers, one is seen here.
    if (this.#changed(photo && appearance(photo), view, JSON.stringify(show))) this.redraw();
  }

  #changed(...sight) {
    const before = this.sight ?? [];
    this.sight = sight.flat();
    return this.sight.some((part, i) => part !== before[i]);
  }

  #draw() {
    const { photo } = this;
    if (!photo) return;
    const width = photo.record?.width ?? photo.image?.naturalWidth ?? 3;
    const height = photo.record?.height ?? photo.image?.naturalHeight ?? 2;
    const wide = this.room.clientWidth;
    const high = parseFloat(getComputedStyle(this.room).maxHeight);
    const scale = Math.min(wide / width, high / height);
    const css = [Math.round(scale * width), Math.round(scale * height)];
    const comparing = this.view !== "photo" && Boolean(photo.record && photo.image);
    const size = comparing ? [wide, Math.round(Math.min(high, FLATTEST * wide))] : css;
    Object.assign(this.frame.style, { width: `${size[0]}px`, height: `${size[1]}px` });
    this.frame.classList.toggle("comparing", comparing);
    if (this.scene) this.scene.canvas.hidden = !photo.record;
    if (!photo.record || css.some((side) => side < 1)) {
      this.drawn = null;
      this.context.clearRect(0, 0, this.overlay.width, this.overlay.height);
      return;
    }
    const record = withKnown(photo.record, photo.known);
    const { gravity } = record;
    const whole = new Camera(record);
    if (comparing) this.#compare(whole, gravity, css, size);
    else this.#drawPhoto(whole, gravity, css);
  }

  #drawPhoto(whole, gravity, css) {
    const { photo, show } = this;
    const camera = whole.resized(...css.map((side) => Math.round(side * devicePixelRatio)));
    Object.assign(this.overlay, { width: camera.width, height: camera.height });
    drawOverlay(this.context, camera, gravity, show, photo.fields, leastOnScreen());
    photo.box ??= placeBox(whole, gravity);
    this.camera = camera;
    this.gravity = gravity;
    const box = show.box || show.ground ? photo.box : null;
    if (this.scene && this.scene.canvas.parentNode !== this.frame) {
      this.overlay.after(this.scene.canvas);
    }
    this.drawn = this.scene?.draw(camera, gravity, box, show, this.hovers || this.grabbed) ?? null;
  }

  #compare(whole, gravity, css, room) {
    const reason = obstacle(this.view, whole, gravity);
    element("obstacle-words").textContent = reason ?? "";
    element("obstacle").hidden = !reason;
    element("try-lens").hidden = this.view !== "undistorted";
    this.wipe.hidden = Boolean(reason);
    this.frame.classList.toggle("obstructed", Boolean(reason));
    if (reason) return;
    if (!this.scene) return;
    this.comparison ??= new Comparison(element("comparison"));
    const size = room.map((side) => Math.round(side * devicePixelRatio));
    const wipe = this.wipe.valueAsNumber / 100;
    this.frame.style.setProperty("--wipe", `${100 * wipe}%`);
    const camera = whole.resized(...css);
    this.comparison.draw(this.photo.image, camera, gravity, this.view, size, wipe);
  }

  #listen() {
    const at = (event) => {
      const box = this.overlay.getBoundingClientRect();
      const scale = this.overlay.width / box.width;
      return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    };
    this.frame.addEventListener("pointerdown", (event) => {
      const grip = this.#gripAt(at(event));
      if (!grip) return;
      this.grabbed = grip;
      this.frame.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.frame.focus({ preventScroll: true });
    });
    this.frame.addEventListener("pointermove", (event) => {
      const pixel = at(event);
      if (this.grabbed) this.#pull(pixel);
      const grip = this.grabbed ?? this.#gripAt(pixel);
      if (!this.#isDrawnOn) this.frame.dataset.grip = grip?.kind ?? "";
      if (this.hovers !== (grip?.kind === "turn")) {
        this.hovers = !this.hovers;
        this.redraw();
      }
    });
    const release = () => {
      if (this.grabbed) this.#announce();
      this.grabbed = null;
      this.redraw();
    };
    this.frame.addEventListener("pointerup", release);
    this.frame.addEventListener("pointercancel", release);
    // A finger on the box moves it; anywhere else it scrolls the page.
    this.frame.addEventListener(
      "touchstart",
      (event) => this.#gripAt(at(event.touches[0])) && event.preventDefault(),
      { passive: false },
    );
    this.frame.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Whether hands draw lines, and leave the box alone. */
  get #isDrawnOn() {
    return this.frame.classList.contains("drawing");
  }

  /** What a pointer there would take hold of. */
  #gripAt(pixel) {
    const { box } = this.photo ?? {};
    if (this.#isDrawnOn || this.view !== "photo" || !this.show.box || !box || !this.drawn) return null;
    const foot = pixelOf(box.x, box.z, this.camera, this.gravity);
    if (this.drawn.faces.some(({ outline }) => contains(outline, pixel))) {
      return { kind: "move", offset: [foot[0] - pixel[0], foot[1] - pixel[1]] };
    }
    const ground = groundAt(pixel, this.camera, this.gravity);
    if (!ground) return null;
    const [dx, dz] = [ground[0] - box.x, ground[1] - box.z];
    const away = Math.hypot(dx, dz) / box.side;
    if (away < RING[0] - 0.25 || away > RING[1] + 0.15) return null;
    return { kind: "turn", from: box.turn - Math.atan2(dx, dz) };
  }

  #pull(pixel) {
    const { box } = this.photo;
    const moved = this.grabbed.offset ?? [0, 0];
    const ground = groundAt([pixel[0] + moved[0], pixel[1] + moved[1]], this.camera, this.gravity);
    if (!ground) return;
    if (this.grabbed.kind === "turn") {
      box.turn = this.grabbed.from + Math.atan2(ground[0] - box.x, ground[1] - box.z);
    } else if (1 / Math.hypot(...ground, 1) > 4 * LEAST_SLOPE) {
      [box.x, box.z] = ground;
    }
    this.redraw();
  }

  #key(event) {
    const box = this.photo?.box;
    if (event.target !== this.frame || !box || this.#isDrawnOn || this.view !== "photo") return;
    const step = (event.shiftKey ? FINE : 1) * 0.2 * box.side;
    const turn = (event.shiftKey ? FINE : 1) * TURN_STEP;
    const moves = {
      ArrowLeft: () => (box.x -= step),
      ArrowRight: () => (box.x += step),
      ArrowUp: () => (box.z += step),
      ArrowDown: () => (box.z -= step),
      "[": () => (box.turn -= turn),
      "]": () => (box.turn += turn),
      "+": () => (box.side *= 1.1),
      "-": () => (box.side /= 1.1),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
    this.#announce();
    this.redraw();
  }

  #announce() {
    clearTimeout(this.speaks);
    const { box } = this.photo;
    this.speaks = setTimeout(() => {
      element("box-words").textContent = boxWords(box);
    }, ANNOUNCE_MS);
  }
}

/** Whether a pixel lies within an outline. */
function contains(outline, [x, y]) {
  let inside = false;
  outline.forEach(([ax, ay], i) => {
    const [bx, by] = outline.at(i - 1);
    if (ay > y !== by > y && x < ax + ((y - ay) * (bx - ax)) / (by - ay)) inside = !inside;
  });
  return inside;
}
