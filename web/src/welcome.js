/** The example town on the empty page, with its true horizon: it was rendered so. */

import { placeBox } from "./box.js";
import { Camera } from "./camera.js";
import { drawOverlay, leastOnScreen } from "./overlay.js";
import { gravityOf, radians } from "./vectors.js";

/** As examples/town.json says. */
const TRUTH = { roll: 6, pitch: 8, vfov: 60 };

/** scene: for the box; null where there is no WebGL. */
export async function drawExample(scene) {
  const picture = document.getElementById("example-picture");
  const canvas = document.getElementById("example-overlay");
  await Promise.all([picture.decode(), document.fonts.load('650 13px "Inter Variable"')]);
  const shown = picture.clientWidth * devicePixelRatio || picture.naturalWidth;
  const scale = shown / picture.naturalWidth;
  const [width, height] = [picture.naturalWidth, picture.naturalHeight].map((side) =>
    Math.round(scale * side),
  );
  Object.assign(canvas, { width, height });
  const f = height / (2 * Math.tan(radians(TRUTH.vfov) / 2));
  const camera = new Camera({
    camera_model: "pinhole",
    fx: f,
    fy: f,
    cx: width / 2,
    cy: height / 2,
    distortion: [],
    width,
    height,
  });
  const gravity = gravityOf(TRUTH.roll, TRUTH.pitch);
  const show = { horizon: true, latitudes: true, box: true, ground: true };
  drawOverlay(canvas.getContext("2d"), camera, gravity, show, null, leastOnScreen());
  if (!scene || !canvas.offsetParent) return;
  scene.canvas.hidden = false;
  canvas.after(scene.canvas);
  scene.draw(camera, gravity, placeBox(camera, gravity), show, false);
}
