/** Where the lines on a photo run: as geocalib.overlay.curves, in pixels of the picture drawn. */

import { degrees, dot, levelFrame, radians, toCamera } from "./vectors.js";

const STEPS_DEG = [1, 2, 5, 10, 15];
const MOST_LINES = 6;
const AZIMUTHS = 1440;
const FAR = 20; // a line is followed up to that many image sides away
const NEAR_POLE = radians(88); // beyond, arrows would turn about each other

/** Points over the image, so many each way. */
export function lattice(camera, columns, rows) {
  const points = [];
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) {
      points.push([((i + 0.5) * camera.width) / columns, ((j + 0.5) * camera.height) / rows]);
    }
  }
  return points;
}

/** Radians above the horizon at a pixel, null where it has no ray. */
export function latitude(camera, gravity, pixel) {
  const ray = camera.unproject(pixel);
  return ray && Math.asin(Math.min(1, Math.max(-1, -dot(ray, gravity))));
}

/** The pieces of a line of equal latitude, each a list of pixels. */
export function circle(camera, gravity, level) {
  const frame = levelFrame(gravity);
  const [sine, cosine] = [Math.sin(radians(level)), Math.cos(radians(level))];
  const longest = Math.max(camera.width, camera.height);
  const pieces = [];
  let piece = [];
  const finish = () => {
    if (piece.length > 1) pieces.push(piece);
    piece = [];
  };
  for (let i = 0; i <= AZIMUTHS; i++) {
    const azimuth = (2 * i * Math.PI) / AZIMUTHS - Math.PI;
    const ray = [cosine * Math.sin(azimuth), -sine, cosine * Math.cos(azimuth)];
    const pixel = camera.project(toCamera(frame, ray));
    if (pixel === null || Math.max(...pixel.map(Math.abs)) > FAR * longest) {
      finish();
      continue;
    }
    const last = piece.at(-1);
    // Behind a very wide lens, neighbours lie on opposite sides of the picture.
    if (last && Math.hypot(pixel[0] - last[0], pixel[1] - last[1]) > longest) finish();
    piece.push(pixel);
  }
  finish();
  return pieces;
}

/** Degrees of the lines of equal latitude that a picture shows, without the horizon. */
export function levels(camera, gravity) {
  let [low, high] = [Infinity, -Infinity];
  for (const pixel of lattice(camera, 48, 48)) {
    const angle = latitude(camera, gravity, pixel);
    if (angle === null) continue;
    [low, high] = [Math.min(low, degrees(angle)), Math.max(high, degrees(angle))];
  }
  if (low > high) return [];
  const step = STEPS_DEG.find((s) => (high - low) / s <= MOST_LINES) ?? STEPS_DEG.at(-1);
  const found = [];
  for (let level = step * Math.ceil(low / step); level <= Math.floor(high); level += step) {
    if (level !== 0 && Math.abs(level) < 90) found.push(level);
  }
  return found;
}

/** The unit image direction in which a point at that pixel moves when it rises; null without. */
export function up(camera, gravity, pixel) {
  const ray = camera.unproject(pixel);
  if (ray === null) return null;
  const STEP = 1e-5;
  const [above, below] = [-STEP, STEP].map((step) =>
    camera.project(ray.map((part, i) => part + step * gravity[i])),
  );
  if (above === null || below === null) return null;
  const way = [above[0] - below[0], above[1] - below[1]];
  const length = Math.hypot(...way);
  return length > 0 ? way.map((part) => part / length) : null;
}

/** Arrows about that far apart: [{ point, direction }]. */
export function upArrows(camera, gravity, spacing) {
  const [columns, rows] = [camera.width, camera.height].map((side) =>
    Math.max(1, Math.round(side / spacing)),
  );
  const arrows = [];
  for (const point of lattice(camera, columns, rows)) {
    const angle = latitude(camera, gravity, point);
    if (angle === null || Math.abs(angle) >= NEAR_POLE) continue;
    const direction = up(camera, gravity, point);
    if (direction) arrows.push({ point, direction });
  }
  return arrows;
}

/** Whether the picture shows some of these pieces. */
export const inView = (pieces, camera) =>
  pieces.some((piece) =>
    piece.some(([x, y]) => x >= 0 && y >= 0 && x <= camera.width && y <= camera.height),
  );

/** From the middle of the image to a horizon that it does not show: point, direction, degrees. */
export function horizonMark(camera, gravity) {
  const sign = gravity[2] < 0 ? 1 : -1;
  const way = [sign * gravity[0], sign * gravity[1]];
  const length = Math.hypot(...way);
  const direction = length > 1e-6 ? way.map((part) => part / length) : [0, 1];
  const middle = [camera.width / 2, camera.height / 2];
  const reach = Math.min(...middle.map((half, i) => half / Math.abs(direction[i])));
  const point = middle.map((half, i) => half + reach * direction[i]);
  const angle = latitude(camera, gravity, point);
  return { point, direction, angleDeg: angle === null ? NaN : Math.abs(degrees(angle)) };
}
