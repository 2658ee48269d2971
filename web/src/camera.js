/** One camera: rays to pixels and back. Pixels span [0, width] × [0, height], y down. */

import { MODELS } from "./models.js";
import { degrees, times } from "./vectors.js";

/** Millimetres: 35 mm equivalents are counted by the diagonal of the image. */
export const FILM_DIAGONAL = Math.hypot(36, 24);

export class Camera {
  constructor({ camera_model, fx, fy, cx, cy, distortion, width, height }) {
    this.name = camera_model;
    this.model = MODELS[camera_model];
    Object.assign(this, { fx, fy, cx, cy, distortion, width, height });
  }

  /** Of the photo resampled to width × height. */
  resized(width, height) {
    const [x, y] = [width / this.width, height / this.height];
    return new Camera({
      camera_model: this.name,
      fx: this.fx * x,
      fy: this.fy * y,
      cx: this.cx * x,
      cy: this.cy * y,
      distortion: this.distortion,
      width,
      height,
    });
  }

  /** The pixel of a ray of any length, null where it has none. */
  project([x, y, z]) {
    const r = Math.hypot(x, y);
    if (r === 0) return z > 0 ? [this.cx, this.cy] : null;
    const radius = this.model.radius(r, z, this.distortion);
    if (!Number.isFinite(radius)) return null;
    return [this.cx + (this.fx * x * radius) / r, this.cy + (this.fy * y * radius) / r];
  }

  /** The ray (m, depth) of a pixel, not of unit length; null where it has none. */
  ray([u, v]) {
    const m = [(u - this.cx) / this.fx, (v - this.cy) / this.fy];
    const depth = this.model.depth(m[0] * m[0] + m[1] * m[1], this.distortion);
    return Number.isFinite(depth) ? [m[0], m[1], depth] : null;
  }

  unproject(pixel) {
    const ray = this.ray(pixel);
    return ray && times(ray, 1 / Math.hypot(...ray));
  }

  /**
   * Vertical and horizontal fields of view in degrees; null for a lens whose border has no ray.
   * betweenBorders: as angles between border rays, of perspective models as well.
   */
  fieldsOfView(betweenBorders = false) {
    if (!this.model.wide && !betweenBorders) {
      const angle = (side, f) => degrees(2 * Math.atan(side / (2 * f)));
      return { vfov_deg: angle(this.height, this.fy), hfov_deg: angle(this.width, this.fx) };
    }
    const between = (first, last) => {
      const ends = [first, last].map((pixel) => this.unproject(pixel));
      return ends.every(Boolean) ? degrees(angleThroughAxis(...ends)) : null;
    };
    const [w, h] = [this.width, this.height];
    return {
      vfov_deg: between([w / 2, 0], [w / 2, h]),
      hfov_deg: between([0, h / 2], [w, h / 2]),
    };
  }

  /** Millimetres of full frame by which the view is as wide along the diagonal. */
  get equivalent() {
    return this.fy * this.millimetres;
  }

  /** Millimetres of full frame in a pixel. */
  get millimetres() {
    return FILM_DIAGONAL / Math.hypot(this.width, this.height);
  }
}

function angleThroughAxis(a, b) {
  const product = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const angle = Math.acos(Math.min(1, Math.max(-1, product)));
  const beyond = Math.acos(a[2]) + Math.acos(b[2]) > Math.PI;
  return beyond ? 2 * Math.PI - angle : angle;
}
