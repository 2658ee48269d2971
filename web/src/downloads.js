/** Files for other programs, and pictures. */

import * as api from "./api.js";
import { withKnown } from "./words.js";

const element = (id) => document.getElementById(id);

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const stem = (name) => name.replace(/\.[^.]+$/, "");

export class Downloads {
  constructor(album) {
    this.album = album;
    this.note = element("download-note");
    this.shown = null; // the photo that was looked at
    this.forced = false; // whether all were chosen for want of an answer
    for (const button of document.querySelectorAll("[data-format]")) {
      button.addEventListener("click", () => this.#try(button, () => this.#file(button)));
    }
    for (const button of document.querySelectorAll("[data-picture]")) {
      button.addEventListener("click", () => this.#try(button, () => this.#picture(button)));
    }
  }

  show() {
    // What was saved is said until another photo is looked at.
    if (this.shown !== this.album.selected) this.note.textContent = "";
    this.shown = this.album.selected;
    const count = this.album.ready.length;
    element("downloads").hidden = count === 0;
    const alone = Boolean(this.album.selected?.record);
    element("download-which").hidden = count < 2 && alone;
    element("download-one").disabled = !alone;
    // Of a photo without an answer there is nothing to take; the choice is made again for others.
    if (!alone && element("download-one").checked) {
      this.forced = element("download-all").checked = true;
    } else if (alone && this.forced) {
      element("download-one").checked = true;
      this.forced = false;
    }
    element("download-all-words").textContent = count === 1 ? "The other photo" : `All ${count} photos`;
  }

  get #photos() {
    const { ready, selected } = this.album;
    const all = element("download-all").checked || !selected?.record;
    return all ? ready : [selected];
  }

  async #try(button, work) {
    button.disabled = true;
    this.note.textContent = "";
    try {
      this.note.textContent = `Saved ${await work()}.`;
    } catch (error) {
      this.note.textContent = error.message;
    }
    button.disabled = false;
    button.focus();
  }

  async #file({ dataset: { format } }) {
    const records = this.#photos.map((photo) => photo.record);
    const { blob, name } = await api.exported(records, format);
    save(blob, name);
    return name;
  }

  async #picture({ dataset: { picture } }) {
    const photos = this.#photos;
    for (const photo of photos) {
      const record = withKnown(photo.record, photo.known);
      const blob = await api.render(photo.file, record, picture);
      save(blob, `${stem(photo.name)}-${picture}.${blob.type.split("/")[1].replace("jpeg", "jpg")}`);
    }
    return photos.length === 1 ? `the ${picture} picture` : `${photos.length} pictures`;
  }
}
