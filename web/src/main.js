/** The page: who tells whom. */

import { Album } from "./album.js";
import { Drawing } from "./drawing.js";
import { Downloads } from "./downloads.js";
import { Filmstrip, SideBySide } from "./filmstrip.js";
import { intake } from "./intake.js";
import { Knobs } from "./knobs.js";
import { showNumbers } from "./numbers.js";
import { BoxScene } from "./scene.js";
import { Stage } from "./stage.js";
import { drawExample } from "./welcome.js";
import { whereTo } from "./words.js";

const element = (id) => document.getElementById(id);
const EXAMPLE = "town.jpg";

/** Null where the browser has no WebGL: the rest of the page goes on. */
function sceneOrNothing() {
  try {
    return new BoxScene();
  } catch {
    element("no-webgl").hidden = false;
    return null;
  }
}

const album = new Album();
const scene = sceneOrNothing();
const stage = new Stage(scene);
const drawing = new Drawing(album);
const knobs = new Knobs(album);
const downloads = new Downloads(album);
const filmstrip = new Filmstrip(album);
const sideBySide = new SideBySide(album, (photo) => {
  element("view-photo").checked = true;
  album.select(photo);
  element("stage").focus();
});

const switches = [...document.querySelectorAll("[data-show]")];
const views = [...document.querySelectorAll("input[name=view]")];

const whatToShow = () =>
  Object.fromEntries(switches.map((input) => [input.dataset.show, input.checked]));
const viewChosen = () => views.find((input) => input.checked).value;

function showPhoto() {
  const view = viewChosen();
  const together = view === "together";
  element("stage-room").hidden = together;
  element("side-by-side").hidden = !together;
  element("switches").hidden = view !== "photo" && !together;
  element("switches").classList.toggle("together", together);
  element("turn").hidden = together;
  element("turn").disabled = album.selected?.state === "failed";
  stage.set(album.selected, together ? "photo" : view, whatToShow());
  drawing.show(album.selected, view === "photo");
  filmstrip.show(together);
  if (together) sideBySide.show(whatToShow());
}

function showAll() {
  const any = album.photos.length > 0;
  document.body.classList.toggle("empty", !any);
  element("welcome").hidden = any;
  element("work").hidden = !any;
  if (!any) drawExample(scene);
  const several = album.photos.length > 1;
  element("view-together-label").hidden = !several;
  if (!several && viewChosen() === "together") element("view-photo").checked = true;
  downloads.show();
  showFit();
}

function showFit() {
  element("work").setAttribute("aria-busy", String(album.busy));
  showNumbers(album);
  knobs.show();
  showPhoto();
}

element("turn").addEventListener("click", () => album.turn(album.selected));
element("local").textContent = whereTo(location.hostname);
album.addEventListener("change", showAll);
album.addEventListener("fit", showFit);
for (const input of [...switches, ...views]) input.addEventListener("change", showPhoto);
intake(document.body, (files) => album.add(files));
for (const button of document.querySelectorAll("[data-example]")) {
  button.addEventListener("click", async () => {
    const blob = await (await fetch(EXAMPLE)).blob();
    album.add([new File([blob], EXAMPLE, { type: blob.type })]);
  });
}
showAll();
