/**
 * A cube that stands on the ground in front of the camera, as geocalib.overlay.box places it.
 *
 * Lengths are in heights of the camera above the ground, which one picture cannot tell. The level
 * frame has x right, y down and z ahead; the ground is y = 1.
 */

import { lattice } from "./curves.js";
import { dot, levelFrame, radians, toCamera, toLevel } from "./vectors.js";

const GOOD_SIZE = 0.32; // of the image's shorter side, as it appears
const TRIED_SIZES = [0.1, 0.16, 0.23, 0.3];
const PLACES = 25;
const MARGIN = 0.03;
export const LEAST_SLOPE = Math.sin(radians(0.2));
const HIGHEST = 0.8; // a box lower than the camera shows its lid
const STEEPEST = Math.sin(radians(45));
const GOOD_PLACE = [0.5, 0.62];
const TURN_DEG = 32; // against the line of sight, so that two walls are seen
const SAMPLES = 17; // along an edge, which a lens may bend

/** Corners of the unit cube: x, y (1 is the ground), z. */
const CORNERS = [...Array(8).keys()].map((i) => [(i >> 2) & 1, (i >> 1) & 1, i & 1]);
const FACES = [0, 1, 2].flatMap((axis) =>
  [0, 1].map((side) => ({
    lid: axis === 1 && side === 0,
    corners: CORNERS.flatMap((corner, i) => (corner[axis] === side ? [i] : [])),
    axis,
  })),
);

/** A box: the middle of its floor (x, z), its side and its turn in radians. */
export function placeBox(camera, gravity) {
  const level = levelFrame(gravity);
  const short = Math.min(camera.width, camera.height);
  let best = null;
  for (const pixel of lattice(camera, PLACES, PLACES)) {
    const ray = camera.unproject(pixel);
    const way = ray && toLevel(level, ray);
    if (!way || way[1] <= LEAST_SLOPE) continue;
    const [x, z] = [way[0] / way[1], way[2] / way[1]];
    for (const share of TRIED_SIZES) {
      const side = (Math.hypot(x, 1, z) * short * share) / camera.fy;
      const box = { x, z, side, turn: Math.atan2(x, z) + radians(TURN_DEG) };
      const cost = costOf(box, camera, level, short);
      if (best === null || cost < best.cost) best = { box, cost };
    }
  }
  return best && best.cost < Infinity ? best.box : null;
}

function costOf(box, camera, level, short) {
  const pixels = cornersOf(box).map((corner) => camera.project(toCamera(level, corner)));
  if (pixels.includes(null)) return Infinity;
  const sides = [camera.width, camera.height];
  const [low, high] = [Math.min, Math.max].map((end) =>
    [0, 1].map((i) => end(...pixels.map((pixel) => pixel[i]))),
  );
  if ([0, 1].some((i) => low[i] < MARGIN * sides[i] || high[i] > (1 - MARGIN) * sides[i])) {
    return Infinity;
  }
  const extent = Math.max(high[0] - low[0], high[1] - low[1]) / short;
  const away = Math.hypot(
    ...[0, 1].map((i) => (low[i] + high[i]) / (2 * sides[i]) - GOOD_PLACE[i]),
  );
  const steep = 1 / Math.hypot(box.x, 1, box.z);
  return (
    Math.abs(Math.log(extent / GOOD_SIZE)) +
    1.5 * away +
    2 * Math.max(0, box.side - HIGHEST) +
    2 * Math.max(0, steep - STEEPEST)
  );
}

/** The eight corners in the level frame. */
function cornersOf({ x, z, side, turn }) {
  const [sine, cosine] = [Math.sin(turn), Math.cos(turn)];
  return CORNERS.map((corner) => {
    const [a, b, c] = [corner[0] - 0.5, corner[1] - 1, corner[2] - 0.5].map((v) => v * side);
    return [x + cosine * a + sine * c, 1 + b, z + cosine * c - sine * a];
  });
}

/**
 * The picture of a box: { faces: [{ outline, lid, axis }], seen, hidden } with lists of pixels per
 * face and edge; null where the lens does not show all of it.
 */
export function pictureOf(box, camera, gravity) {
  const level = levelFrame(gravity);
  const corners = cornersOf(box);
  const middle = mean(corners);
  const edge = (a, b) => sampled(corners[a], corners[b], camera, level);
  const seen = new Map();
  const faces = [];
  for (const { lid, corners: own, axis } of FACES) {
    const face = mean(own.map((i) => corners[i]));
    // The camera is at the origin: a face is seen if it is turned against its own place.
    if (dot(face.map((part, i) => part - middle[i]), face) >= 0) continue;
    const [a, b, c, d] = own;
    const sides = [[a, b], [b, d], [d, c], [c, a]].map(([p, q]) => {
      seen.set(Math.min(p, q) * 8 + Math.max(p, q), [p, q]);
      return edge(p, q);
    });
    if (sides.includes(null)) return null;
    faces.push({ outline: sides.flatMap((side) => side.slice(1)), lid, axis });
  }
  const hidden = [];
  for (let a = 0; a < 8; a++) {
    for (const b of [a ^ 1, a ^ 2, a ^ 4]) {
      if (b > a && !seen.has(a * 8 + b)) hidden.push(edge(a, b));
    }
  }
  if (hidden.includes(null)) return null;
  return { faces, hidden, seen: [...seen.values()].map(([a, b]) => edge(a, b)) };
}

const mean = (points) =>
  [0, 1, 2].map((i) => points.reduce((sum, point) => sum + point[i], 0) / points.length);

function sampled(from, to, camera, level) {
  const pixels = [];
  for (let i = 0; i < SAMPLES; i++) {
    const share = i / (SAMPLES - 1);
    const point = from.map((part, j) => part + share * (to[j] - part));
    const pixel = camera.project(toCamera(level, point));
    if (pixel === null) return null;
    pixels.push(pixel);
  }
  return pixels;
}

/** The place on the ground that a pixel shows, (x, z); null above the horizon. */
export function groundAt(pixel, camera, gravity) {
  const ray = camera.unproject(pixel);
  const way = ray && toLevel(levelFrame(gravity), ray);
  return way && way[1] > LEAST_SLOPE ? [way[0] / way[1], way[2] / way[1]] : null;
}

/** Where a place on the ground appears; null where the lens does not show it. */
export const pixelOf = (x, z, camera, gravity) =>
  camera.project(toCamera(levelFrame(gravity), [x, 1, z]));
