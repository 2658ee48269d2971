/** What was found, drawn over a photo: as geocalib.overlay does it, in the browser, per frame. */

import * as curves from "./curves.js";
import { levelFrame } from "./vectors.js";

export const HORIZON = "#e6007e";
const ARROW = "#14213d";
const LEVEL = ["#ff6d00", "#00b34a", "#9c27b0"]; // one for each heading
const LINES = [
  { kind: "unused", colour: "#ffffff", stroke: 0.9, alpha: 0.5 },
  ...LEVEL.map((colour, i) => ({ kind: "level", heading: i + 1, colour, stroke: 2.2, alpha: 0.9 })),
  { kind: "vertical", colour: "#00a5ff", stroke: 2.2, alpha: 0.9 },
];
const POINTS_ACROSS = 1000; // points, the unit of strokes, along the longer side
const LEAST_POINT = 0.4; // pixels
const LEAST_LETTER = 7;
const LABEL = 13;
const FADING = 0.5; // power of relative confidences: they span many orders of magnitude
const SURE = 0.9; // share of the cells that are less sure than what is shown without a veil
const MOST_ARROWS = 13;
const LEAST_SPACING = 14;

const VEIL = [18, 14, 48];
const DARKEST = 230; // of 255, where the network saw nothing
const NARROW = 0.1; // of a side

/** ColorBrewer's RdBu, from red to blue. */
const RED_TO_BLUE = [
  [103, 0, 31],
  [178, 24, 43],
  [214, 96, 77],
  [244, 165, 130],
  [253, 219, 199],
  [247, 247, 247],
  [209, 229, 240],
  [146, 197, 222],
  [67, 147, 195],
  [33, 102, 172],
  [5, 48, 97],
];

const mix = (a, b, share) => a.map((part, i) => part + share * (b[i] - part));

/** Red below the horizon, blue above, darker towards the poles, never pale. */
export function latitudeColour(level) {
  const at = 10 * (0.5 + (level < 0 ? -1 : 1) * (0.26 + (0.24 * Math.abs(level)) / 90));
  const index = Math.min(9, Math.floor(at));
  const colour = mix(RED_TO_BLUE[index], RED_TO_BLUE[index + 1], at - index);
  return `rgb(${colour.map(Math.round).join(" ")})`;
}

const signed = (level) => `${level > 0 ? "+" : "−"}${Math.abs(level)}°`;

/** Pixels of the unit of strokes and letters, by default on a picture that is looked at as it is. */
const pointOf = (camera, least = LEAST_POINT) =>
  Math.max(least, Math.max(camera.width, camera.height) / POINTS_ACROSS);

/** The least unit on a screen: below it letters are too small to be read. */
export const leastOnScreen = () => 0.85 * devicePixelRatio;

/**
 * Draws what is switched on.
 *
 * context: of a canvas of the camera's size; show: { horizon, latitudes, up, lines, confidence };
 * fields: the answer of /v1/fields, or null as long as it is not there; least: pixels of a point.
 */
export function drawOverlay(context, camera, gravity, show, fields, least) {
  const point = pointOf(camera, least);
  context.clearRect(0, 0, camera.width, camera.height);
  if (show.confidence && fields) drawConfidence(context, camera, fields);
  if (show.lines && fields) drawLines(context, camera, fields, point);
  const labels = [];
  if (show.latitudes) {
    for (const level of curves.levels(camera, gravity)) {
      const pieces = curves.circle(camera, gravity, level);
      drawCurve(context, pieces, latitudeColour(level), 1.5 * point, point);
      const text = signed(level);
      labels.push(labelOn(camera, gravity, pieces, text, latitudeColour(level), point));
    }
  }
  const horizon = curves.circle(camera, gravity, 0);
  if (show.up) drawArrows(context, camera, gravity, labels, point);
  if (show.horizon && curves.inView(horizon, camera)) {
    drawCurve(context, horizon, HORIZON, 3.4 * point, point);
    labels.push(labelOn(camera, gravity, horizon, "horizon", HORIZON, point));
  } else if (show.horizon) {
    labels.push(drawMark(context, camera, curves.horizonMark(camera, gravity), point));
  }
  if (LABEL * point >= LEAST_LETTER) {
    for (const label of labels) if (label) write(context, label, point);
  }
}

function trace(context, pieces) {
  context.beginPath();
  for (const piece of pieces) {
    context.moveTo(...piece[0]);
    for (const pixel of piece) context.lineTo(...pixel);
  }
}

function drawCurve(context, pieces, colour, width, point) {
  context.lineCap = context.lineJoin = "round";
  trace(context, pieces);
  context.strokeStyle = "rgb(255 255 255 / 0.75)";
  context.lineWidth = width + 2.2 * point;
  context.stroke();
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
}

const halfExtent = (text, point) => [
  (0.31 * text.length + 0.3) * LABEL * point,
  0.8 * LABEL * point,
];

/** As on a map, a label at the end of the line; null where there is no room. */
function labelOn(camera, gravity, pieces, text, colour, point) {
  const half = halfExtent(text, point);
  const right = levelFrame(gravity).right;
  let best = null;
  for (const [x, y] of pieces.flat()) {
    const free = x >= half[0] && x <= camera.width - half[0];
    if (!free || y < half[1] || y > camera.height - half[1]) continue;
    const along = x * right[0] + y * right[1];
    if (best === null || along > best.along) best = { along, x, y };
  }
  return best && { x: best.x, y: best.y, text, colour, half };
}

function write(context, { x, y, text, colour }, point) {
  context.font = `650 ${LABEL * point}px "Inter Variable", system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.strokeStyle = "rgb(255 255 255 / 0.95)";
  context.lineWidth = 4 * point;
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

function drawArrows(context, camera, gravity, labels, point) {
  const spacing = Math.max((point * POINTS_ACROSS) / MOST_ARROWS, LEAST_SPACING);
  const length = 0.5 * spacing;
  const clear = (place) => (label) =>
    !label ||
    [0, 1].some(
      (i) => Math.abs(place[i] - [label.x, label.y][i]) > label.half[i] + 0.25 * spacing,
    );
  context.lineCap = context.lineJoin = "round";
  context.beginPath();
  for (const { point, direction } of curves.upArrows(camera, gravity, spacing)) {
    if (!labels.every(clear(point))) continue;
    const [dx, dy] = direction.map((part) => (part * length) / 2);
    const [tip, head] = [[point[0] + dx, point[1] + dy], 0.34];
    context.moveTo(point[0] - dx, point[1] - dy);
    context.lineTo(...tip);
    for (const side of [-1, 1]) {
      context.moveTo(...tip);
      context.lineTo(
        tip[0] - head * (2 * dx + side * 1.3 * dy),
        tip[1] - head * (2 * dy - side * 1.3 * dx),
      );
    }
  }
  context.strokeStyle = "rgb(255 255 255 / 0.8)";
  context.lineWidth = 0.085 * spacing;
  context.stroke();
  context.strokeStyle = ARROW;
  context.lineWidth = 0.045 * spacing;
  context.stroke();
}

/** A triangle on the border that points to the horizon; the label to go beside it. */
function drawMark(context, camera, { point: at, direction, angleDeg }, point) {
  const length = Math.max(24 * point, 5);
  const along = (distance, across) => [
    at[0] - distance * direction[0] - across * direction[1],
    at[1] - distance * direction[1] + across * direction[0],
  ];
  context.beginPath();
  context.moveTo(...along(0.2 * length, 0));
  context.lineTo(...along(1.2 * length, 0.5 * length));
  context.lineTo(...along(1.2 * length, -0.5 * length));
  context.closePath();
  context.lineWidth = 3 * point;
  context.strokeStyle = "white";
  context.stroke();
  context.fillStyle = HORIZON;
  context.fill();
  const text = Number.isFinite(angleDeg) ? `horizon ${angleDeg.toFixed(0)}° beyond` : "horizon";
  const half = halfExtent(text, point);
  const room = Math.abs(direction[0]) * half[0] + Math.abs(direction[1]) * half[1];
  const place = along(1.2 * length + room, 0);
  const within = (value, i, side) => Math.min(Math.max(value, half[i]), side - half[i]);
  return {
    x: within(place[0], 0, camera.width),
    y: within(place[1], 1, camera.height),
    text,
    colour: HORIZON,
    half,
  };
}

/** Segments in the colours of what they were taken for. */
function drawLines(context, camera, { segments, width, height }, point) {
  const [x, y] = [camera.width / width, camera.height / height];
  context.lineCap = "round";
  for (const { kind, heading, colour, stroke, alpha } of LINES) {
    const alike = segments.filter((each) => each.kind === kind && each.heading === heading);
    context.beginPath();
    for (const { ends } of alike) {
      context.moveTo(x * ends[0][0], y * ends[0][1]);
      context.lineTo(x * ends[1][0], y * ends[1][1]);
    }
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = stroke * point;
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Dark where the network saw little, clear where it was sure. */
function drawConfidence(context, camera, { veil, x, y, width, height }) {
  const [dx, dy] = [x[1] - x[0], y[1] - y[0]];
  const [across, down] = [camera.width / width, camera.height / height];
  context.imageSmoothingQuality = "high";
  context.drawImage(
    veil.canvas,
    across * (x[0] - (veil.left + 0.5) * dx),
    down * (y[0] - (veil.top + 0.5) * dy),
    across * dx * veil.canvas.width,
    down * dy * veil.canvas.height,
  );
}

/**
 * A canvas of the confidences, dark where they are low: made once per answer.
 *
 * The grid ends where the network's view does. A border beyond it that is narrow looks as what is
 * beside it; of a wide one the network saw nothing.
 */
export function veilOf({ up_confidence, latitude_confidence, ...grid }) {
  const grids = [up_confidence, latitude_confidence];
  const most = grids.map((values) => Math.max(quantile(values.flat(), SURE), Number.MIN_VALUE));
  const [columns, rows] = [around(grid.x, grid.width), around(grid.y, grid.height)];
  const canvas = new OffscreenCanvas(columns.cells.length, rows.cells.length);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  rows.cells.forEach((j, row) => {
    columns.cells.forEach((i, column) => {
      const seen = i !== null && j !== null;
      const shares = grids.map((values, k) => (seen ? Math.min(1, values[j][i] / most[k]) : 0));
      const sure = ((shares[0] + shares[1]) / 2) ** FADING;
      const alpha = DARKEST * (1 - sure);
      image.data.set([...VEIL, alpha], 4 * (row * canvas.width + column));
    });
  });
  context.putImageData(image, 0, 0);
  return { canvas, left: columns.before, top: rows.before };
}

const quantile = (values, share) =>
  values.sort((a, b) => a - b)[Math.floor(share * (values.length - 1))];

/** The cells along one side that cover all of it: each by its place in the grid, null where the
 * network saw nothing; and how many there are before the grid begins. */
function around(places, side) {
  const [count, step] = [places.length, places[1] - places[0]];
  const [first, last] = [places[0] - step / 2, side - places[count - 1] - step / 2];
  const [before, after] = [first, last].map((gap) => Math.max(0, Math.ceil(gap / step)));
  const beyond = (gap, nearest) => (gap < NARROW * side ? nearest : null);
  const cells = [
    ...Array(before).fill(beyond(first, 0)),
    ...places.keys(),
    ...Array(after).fill(beyond(last, count - 1)),
  ];
  return { cells, before };
}
