/** Vectors of three numbers, and gravity: the frames and signs of docs/conventions.md. */

export const radians = (degrees) => (degrees * Math.PI) / 180;
export const degrees = (angle) => (angle * 180) / Math.PI;

export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const times = (a, factor) => [a[0] * factor, a[1] * factor, a[2] * factor];
export const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];
export const unit = (a) => times(a, 1 / Math.hypot(...a));

/** Gravity, down in the camera frame, of roll and pitch in degrees. */
export function gravityOf(rollDeg, pitchDeg) {
  const [roll, pitch] = [radians(rollDeg), radians(pitchDeg)];
  return [Math.sin(roll) * Math.cos(pitch), Math.cos(roll) * Math.cos(pitch), -Math.sin(pitch)];
}

/** Right, down and ahead of the level frame, each in the camera frame. */
export function levelFrame(gravity) {
  const [x, y] = [gravity[0], gravity[1] + 1e-30];
  const h = Math.hypot(x, y);
  const right = [y / h, -x / h, 0];
  return { right, down: gravity, ahead: cross(right, gravity) };
}

/** A vector of the level frame in the camera frame. */
export const toCamera = (level, [x, y, z]) =>
  add(add(times(level.right, x), times(level.down, y)), times(level.ahead, z));

/** A vector of the camera frame in the level frame. */
export const toLevel = (level, ray) => [
  dot(level.right, ray),
  dot(level.down, ray),
  dot(level.ahead, ray),
];
