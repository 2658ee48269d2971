/** The photos of a visit, what is asked of each, and its answers. */

import * as api from "./api.js";
import { asked, turnedLines } from "./lines.js";
import { veilOf } from "./overlay.js";

const AT_ONCE = 4; // uploads; the server makes batches of what comes together
const REST_MS = 300; // after which a hand rests, and lines are weighed again
const AUTO = "auto"; // the lens that fits best
const NARROW = 0.001; // degrees: one sigma of an angle that is held while the other is free

let count = 0;

class Photo {
  constructor(file) {
    this.key = `photo-${count++}`;
    this.file = file;
    this.name = file.name || "pasted picture";
    this.image = null; // the picture, once it is decoded
    this.url = null; // of that picture
    this.state = "waiting"; // then working, and ready or failed
    this.error = null;
    this.record = null;
    this.fields = null;
    this.model = AUTO;
    this.known = {}; // focal in pixels; roll, pitch in degrees
    this.drawn = []; // lines of a person
    this.undo = []; // the lines before each change to them
    this.box = null;
    this.lens = null; // the focal length that the file told, once its pixels were turned
  }

  /** What is asked of the server. */
  get request() {
    const { focal, roll, pitch } = this.known;
    const both = roll !== undefined && pitch !== undefined;
    const angle = (value) => (both ? value : { value, sigma: NARROW });
    return {
      camera_model: this.model,
      ...(focal !== undefined ? { focal } : this.lens && { focal: this.lens }),
      ...(roll !== undefined && { roll_deg: angle(roll) }),
      ...(pitch !== undefined && { pitch_deg: angle(pitch) }),
    };
  }
}

export class Album extends EventTarget {
  photos = [];
  selected = null;
  shared = false;
  problem = null; // why the last fit gave nothing
  #waiting = [];
  #working = 0;
  #wish = null; // what to fit next, where a fit is under way
  #fitting = false;
  #rest = null;

  get ready() {
    return this.photos.filter((photo) => photo.state === "ready");
  }

  /** Whether an answer is to come. */
  get busy() {
    return this.#working > 0 || this.#fitting || this.#rest !== null;
  }

  /** "change": photos came, went or got answers; "fit": numbers changed. */
  #tell(kind) {
    this.dispatchEvent(new Event(kind));
  }

  add(files) {
    const added = files.map((file) => new Photo(file));
    for (const photo of added) {
      photo.model = this.selected?.model ?? photo.model;
      decode(photo, photo.file).then(() => this.#tell("change"));
    }
    this.photos.push(...added);
    this.#waiting.push(...added);
    if (!this.selected || this.selected.state === "failed") this.selected = added[0];
    this.#tell("change");
    while (this.#working < AT_ONCE && this.#waiting.length > 0) this.#work();
  }

  remove(photo) {
    if (photo.url) URL.revokeObjectURL(photo.url);
    const index = this.photos.indexOf(photo);
    this.photos.splice(index, 1);
    this.#waiting = this.#waiting.filter((other) => other !== photo);
    if (this.selected === photo) {
      this.selected = this.photos[Math.min(index, this.photos.length - 1)] ?? null;
    }
    this.#tell("change");
  }

  /** Turns a photo by a quarter, clockwise, and looks at it anew. */
  async turn(photo) {
    if (!photo?.image || photo.state === "working") return;
    const { record } = photo;
    if (record) photo.lens = lensOfFile(record) ?? photo.lens;
    const file = await turned(photo);
    URL.revokeObjectURL(photo.url);
    const { focal } = photo.known;
    const known = focal === undefined ? {} : { focal };
    const height = record?.height ?? photo.image.naturalHeight;
    Object.assign(photo, { drawn: turnedLines(photo.drawn, height), undo: [] });
    Object.assign(photo, { file, known, record: null, fields: null, box: null, error: null });
    Object.assign(photo, { image: null, url: null, state: "waiting" });
    await decode(photo, file);
    this.#waiting.push(photo);
    this.#tell("change");
    this.#work();
  }

  /** Says what is wrong with what was typed; the next answer takes it back. */
  complain(fault) {
    this.problem = fault;
    this.#tell("fit");
  }

  select(photo) {
    this.selected = photo;
    this.#tell("change");
  }

  async #work() {
    this.#working++;
    while (this.#waiting.length > 0) {
      const photo = this.#waiting.shift();
      photo.state = "working";
      this.#tell("change");
      await this.#calibrate(photo);
      this.#tell("change");
    }
    this.#working--;
    if (this.#working === 0 && this.shared) this.refit();
    this.#tell("change");
  }

  async #calibrate(photo) {
    try {
      const record = await api.calibrate(photo.file, this.#asked(photo));
      if (record.error) throw new Error(record.error);
      photo.record = record;
      photo.state = "ready";
      photo.error = null;
    } catch (error) {
      photo.state = "failed";
      photo.error = error.message;
      // Look at one that can be looked at.
      if (this.selected === photo) this.selected = this.ready[0] ?? this.#waiting[0] ?? photo;
      return;
    }
    if (this.selected.state === "failed") this.selected = photo;
    await Promise.all([loadFields(photo), showable(photo)]);
  }

  /** Whether one camera took all photos. */
  share(shared) {
    this.shared = shared;
    if (shared) {
      const { model, known } = this.selected;
      for (const photo of this.photos) {
        photo.model = model;
        // Angles are each photo's own; held ones would hold for all.
        photo.known = known.focal === undefined ? {} : { focal: known.focal };
      }
    }
    this.refit();
    this.#tell("fit");
  }

  /** Gives or frees (undefined) something known, or another model; the fit follows: at once without
   * the straight lines that were found, which is quick, and with them when the hand rests. */
  change(photo, { model, ...known }) {
    const those = this.shared ? this.photos : [photo];
    for (const each of those) {
      if (model) each.model = model;
      each.known = Object.fromEntries(
        Object.entries({ ...each.known, ...known }).filter(([, value]) => value !== undefined),
      );
    }
    this.#follow(this.shared ? this.ready : [photo], model ? {} : this.#found(photo));
  }

  /** Other lines on a photo; the fit follows in the same way. */
  draw(photo, lines) {
    photo.drawn = lines;
    this.#follow([photo], this.#found(photo));
  }

  /** The lens that was found: which one fits best is asked again when the hand rests. */
  #found({ model, record }) {
    return model === AUTO && record ? { camera_model: record.camera_model } : {};
  }

  /** What is asked about a photo. Lines are drawn on one by itself. */
  #asked({ request, drawn }) {
    return this.shared ? request : { ...request, ...asked(drawn) };
  }

  #follow(fitted, meanwhile = {}) {
    this.refit(fitted, { lines: "off", ...meanwhile });
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => {
      this.#rest = null;
      this.refit(fitted);
    }, REST_MS);
    this.#tell("fit");
  }

  /** Fits anew: one request at a time, and the newest wish when it is back. */
  async refit(photos = this.ready, options = {}) {
    const those = photos.filter((photo) => photo.record);
    if (this.#fitting) {
      this.#wish = [photos, options];
      return;
    }
    if (those.length === 0) {
      this.#tell("fit");
      return;
    }
    this.#fitting = true;
    const groups = this.shared ? [those] : those.map((photo) => [photo]);
    for (const group of groups) await this.#fit(group, options);
    this.#fitting = false;
    const wish = this.#wish;
    this.#wish = null;
    if (wish) this.refit(...wish);
    this.#tell("fit");
  }

  async #fit(photos, options, again = true) {
    const shared = this.shared && { shared: true };
    const request = { ...this.#asked(photos[0]), ...options, ...shared };
    try {
      const records = await api.refit(photos.map((photo) => photo.record.id), request);
      this.problem = null;
      photos.forEach((photo, i) => {
        if (records[i].error) throw new Error(records[i].error);
        photo.record = records[i];
      });
    } catch (error) {
      if (error.status !== 404 || !again) {
        this.problem = error.message;
        return;
      }
      // The server keeps what a network saw for a while only: let it look again.
      for (const photo of photos) await this.#calibrate(photo);
      if (this.shared) await this.#fit(photos.filter((photo) => photo.record), options, false);
    }
  }
}

/** The focal length that the file of an answer tells, as a request has it; null if it tells none. */
function lensOfFile({ priors }) {
  const focal = priors.filter(({ quantity }) => quantity === "focal");
  const held = focal.find(({ against }) => against !== null);
  if (held) return { value: held.estimate[0], sigma: held.estimate_sigma };
  const read = focal.find(({ source, used }) => source !== "given" && used);
  return read ? { value: read.prior[0], sigma: read.prior_sigma } : null;
}

/** A photo's file with its pixels turned by a quarter, clockwise. */
async function turned({ image, record, name }) {
  const width = record?.width ?? image.naturalWidth;
  const height = record?.height ?? image.naturalHeight;
  const canvas = new OffscreenCanvas(height, width);
  const context = canvas.getContext("2d");
  context.translate(height, 0);
  context.rotate(Math.PI / 2);
  context.drawImage(image, 0, 0, width, height);
  const type = "image/jpeg";
  return new File([await canvas.convertToBlob({ type, quality: 0.95 })], name, { type });
}

/** Decodes a file of the photo for the screen; without effect where the browser cannot. */
async function decode(photo, file) {
  const image = new Image();
  const url = URL.createObjectURL(file);
  image.src = url;
  try {
    await image.decode();
  } catch {
    URL.revokeObjectURL(url);
    return;
  }
  photo.image = image;
  photo.url = url;
}

/** Asks the server for a picture of what browsers cannot show, such as HEIC. */
async function showable(photo) {
  if (photo.image) return;
  await decode(photo, photo.file);
  if (photo.image) return;
  await api.render(photo.file, photo.record, "photo").then(
    (picture) => decode(photo, picture),
    () => {}, // the numbers stand without a picture
  );
}

async function loadFields(photo) {
  try {
    const fields = await api.fields(photo.record.id);
    photo.fields = { ...fields, veil: veilOf(fields) };
  } catch {
    photo.fields = null; // nothing to draw; the numbers stand without it
  }
}
