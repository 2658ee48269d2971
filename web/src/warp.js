/** Where the pixels of a photo go when it is made upright, rectified or undistorted:
 * the planes of geocalib.imaging.warp. */

import { degrees, levelFrame, radians, toLevel } from "./vectors.js";

const SMALLEST_COSINE = Math.cos(radians(75)); // what lies farther off the axis is left out
const STEEPEST_PITCH_DEG = 60;

/** Why a photo cannot be changed that way, in words; null where it can. */
export function obstacle(kind, camera, gravity) {
  const pitch = degrees(Math.asin(-gravity[2]));
  if (kind === "rectified" && Math.abs(pitch) > STEEPEST_PITCH_DEG) {
    return `A pitch of ${pitch.toFixed(0)}° is too steep to rectify. Upright takes off the roll alone.`;
  }
  if (kind === "undistorted" && camera.name === "pinhole") {
    return "A pinhole lens bends nothing: choose another lens to see what undistortion does.";
  }
  return null;
}

/**
 * A function from pixels to points on the new picture's plane, relative to its principal point and
 * as large as the old pixels on the optical axis; null where the plane does not show them.
 */
export function plane(kind, camera, gravity) {
  if (kind === "upright") {
    const roll = Math.atan2(gravity[0], gravity[1]);
    const [sine, cosine] = [Math.sin(roll), Math.cos(roll)];
    return ([u, v]) => {
      const [x, y] = [(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy];
      return [camera.fx * (cosine * x - sine * y), camera.fy * (sine * x + cosine * y)];
    };
  }
  const level = kind === "rectified" ? levelFrame(gravity) : null;
  // What the lens magnifies on its axis.
  const [fx, fy] = [camera.fx, camera.fy].map(
    (focal) => focal * camera.model.depth(0, camera.distortion),
  );
  return (pixel) => {
    const ray = camera.unproject(pixel);
    const [x, y, z] = ray && level ? toLevel(level, ray) : (ray ?? [0, 0, 0]);
    if (z < SMALLEST_COSINE) return null;
    return [(fx * x) / z, (fy * y) / z];
  };
}
