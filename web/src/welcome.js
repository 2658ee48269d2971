/** The example town on the empty page, with its true horizon: it was rendered so. */

import { Camera } from "./camera.js";
import { drawOverlay } from "./overlay.js";
import { gravityOf, radians } from "./vectors.js";

/** As examples/town.json says. */
const TRUTH = { roll: 6, pitch: 8, vfov: 60 };

export async function drawExample() {
  const picture = document.getElementById("example-picture");
  const canvas = document.getElementById("example-overlay");
  await picture.decode();
  const [width, height] = [picture.naturalWidth, picture.naturalHeight];
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
  const show = { horizon: true, latitudes: true, up: true };
  drawOverlay(canvas.getContext("2d"), camera, gravityOf(TRUTH.roll, TRUTH.pitch), show, null);
}
