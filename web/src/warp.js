/** Where the pixels of a photo go when it is made upright, rectified or undistorted:
 * the planes of geocalib.imaging.warp. */

import { degrees, levelFrame, radians, toLevel } from "./vectors.js";

export const SMALLEST_COSINE = Math.cos(radians(75)); // what lies farther off the axis is left out
const STEEPEST_PITCH_DEG = 60;

/** What the lens magnifies on its axis: pixels of a new picture in a unit of its plane. */
const scaleOf = (camera) =>
  [camera.fx, camera.fy].map((focal) => focal * camera.model.depth(0, camera.distortion));

/**
 * From the plane of the new picture back to the photo, for a shader: the matrix (by columns) that
 * turns the rays (point / scale, 1) of the plane into the camera's frame. flatly: the picture is only
 * turned, and the lens stays what it is.
 */
export function wayBack(kind, camera, gravity) {
  if (kind === "upright") {
    const roll = Math.atan2(gravity[0], gravity[1]);
    const [sine, cosine] = [Math.sin(roll), Math.cos(roll)];
    const turn = [cosine, -sine, 0, sine, cosine, 0, 0, 0, 1];
    return { turn, scale: [camera.fx, camera.fy], flatly: true };
  }
  const { right, down, ahead } = levelFrame(gravity);
  const turn = kind === "rectified" ? [...right, ...down, ...ahead] : [1, 0, 0, 0, 1, 0, 0, 0, 1];
  return { turn, scale: scaleOf(camera), flatly: false };
}

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
  const [fx, fy] = scaleOf(camera);
  return (pixel) => {
    const ray = camera.unproject(pixel);
    const [x, y, z] = ray && level ? toLevel(level, ray) : (ray ?? [0, 0, 0]);
    if (z < SMALLEST_COSINE) return null;
    return [(fx * x) / z, (fy * y) / z];
  };
}
