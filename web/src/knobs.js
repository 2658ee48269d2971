/** What is known: sliders that hold a value, and the lens. */

import { Camera } from "./camera.js";
import { LENSES, withKnown } from "./words.js";

const element = (id) => document.getElementById(id);
const WIDE = "kannala_brandt"; // what is tried where a pinhole has nothing to undistort

/** A slider, its number and the button that frees it again. */
class Knob {
  /** words: the slider's place for screen readers, of a value. */
  constructor(name, { toSlider, fromSlider, words, give, free, refresh, refuse }) {
    Object.assign(this, { toSlider, fromSlider, words });
    this.root = element(`${name}-knob`);
    this.slider = element(name);
    this.number = element(`${name}-number`);
    this.button = element(`${name}-free`);
    this.slider.addEventListener("input", () => give(fromSlider(this.slider.valueAsNumber)));
    this.number.addEventListener("change", () => {
      const fault = this.#fault();
      this.number.setAttribute("aria-invalid", String(fault !== null));
      if (fault === null) give(this.number.valueAsNumber);
      else refuse(fault);
    });
    this.number.addEventListener("blur", refresh);
    this.button.addEventListener("click", () => {
      free();
      this.slider.focus();
    });
  }

  /** What is wrong with the number that was typed, or null. */
  #fault() {
    const { min, max, value, validity } = this.number;
    if (value !== "" && validity.valid) return null;
    const name = this.root.querySelector("label").textContent;
    const typed = value === "" ? "that" : value;
    return `${name} must lie between ${min} and ${max}; ${typed} is not used.`;
  }

  /** value: in the unit of the number. */
  show(value, digits, given, disabled) {
    this.root.classList.toggle("given", given);
    this.button.hidden = !given;
    for (const input of [this.slider, this.number]) input.disabled = disabled;
    // While it is dragged, the slider is where the hand is.
    if (!given || document.activeElement !== this.slider) {
      this.slider.value = this.toSlider(value);
    }
    if (document.activeElement !== this.number) this.number.value = value.toFixed(digits);
    const state = given ? "given" : "estimated";
    this.slider.setAttribute("aria-valuetext", `${this.words(value)}, ${state}`);
  }
}

export class Knobs {
  constructor(album) {
    this.album = album;
    this.unit = element("focal-unit");
    const give = (known) => album.change(album.selected, known);
    const refresh = () => this.show();
    const refuse = (fault) => album.complain(fault);
    this.focal = new Knob("focal", {
      toSlider: (value) => Math.log(this.#perUnit() * value),
      fromSlider: (place) => Math.exp(place) / this.#perUnit(),
      words: (value) => `${value.toFixed(0)} ${this.unit.selectedOptions[0].title}`,
      give: (value) => give({ focal: (value * this.#perUnit()) / this.#millimetres() }),
      free: () => give({ focal: undefined }),
      refresh,
      refuse,
    });
    for (const name of ["roll", "pitch"]) {
      this[name] = new Knob(name, {
        toSlider: (value) => value,
        fromSlider: (place) => place,
        words: (value) => `${value.toFixed(1)} degrees`,
        give: (value) => give({ [name]: value }),
        free: () => give({ [name]: undefined }),
        refresh,
        refuse,
      });
    }
    this.unit.addEventListener("change", refresh);
    this.lens = element("lens");
    for (const [name, words] of Object.entries(LENSES)) this.lens.add(new Option(words, name));
    this.lens.addEventListener("change", () => give({ model: this.lens.value }));
    element("try-lens").addEventListener("click", () => give({ model: WIDE }));
    this.shared = element("shared");
    this.shared.addEventListener("change", () => album.share(this.shared.checked));
  }

  /** Millimetres of full frame in a pixel of the photo. */
  #millimetres() {
    return new Camera(this.album.selected.record).millimetres;
  }

  /** Millimetres of full frame in one of the number's unit. */
  #perUnit() {
    return this.unit.value === "mm" ? 1 : this.#millimetres();
  }

  show() {
    const { selected: photo, shared, photos } = this.album;
    element("shared-row").hidden = photos.filter(({ state }) => state !== "failed").length < 2;
    this.shared.checked = shared;
    if (!photo?.record) return;
    const shown = withKnown(photo.record, photo.known);
    const millimetres = shown.fy * this.#millimetres();
    const inMm = this.unit.value === "mm";
    this.focal.show(inMm ? millimetres : shown.fy, inMm ? 1 : 0, "focal" in photo.known, false);
    this.roll.show(shown.roll_deg, 1, "roll" in photo.known, shared);
    this.pitch.show(shown.pitch_deg, 1, "pitch" in photo.known, shared);
    this.lens.value = photo.model;
  }
}
