/**
 * A photo before and after it was made upright, rectified or undistorted, with a wipe between.
 *
 * The new picture is made per pixel, as geocalib.imaging.warp makes it: each of its pixels has a ray,
 * and the ray a place in the photo. All lenses are symmetric about their axis, so that a table of
 * |m| by the angle to the axis is all that the shader needs to know of one.
 */

import {
  BufferAttribute,
  BufferGeometry,
  CanvasTexture,
  DataTexture,
  DoubleSide,
  FloatType,
  Matrix3,
  Mesh,
  MeshBasicMaterial,
  OrthographicCamera,
  RedFormat,
  Scene,
  ShaderMaterial,
  SRGBColorSpace,
  Vector2,
  WebGLRenderer,
} from "three";

import { plane, SMALLEST_COSINE, wayBack } from "./warp.js";

const ANGLES = 2048; // in the table, from 0 to 180 degrees
const FARTHEST = 1e4; // |m| that no picture reaches
const CELLS = 32; // each way, to find how far a new picture reaches
const HALVINGS = 10; // of a cell, to find where it ends
const LARGEST_TEXTURE = 2048;
const MOST_GROWTH = 0.75; // of the photo's sides, that the new picture may reach beyond it

const VERTEX = `
  varying vec2 place;
  void main() {
    place = position.xy;
    gl_Position = projectionMatrix * vec4(position, 1.0);
  }`;

const FRAGMENT = `
  uniform sampler2D picture;
  uniform sampler2D profile;
  uniform mat3 turn;
  uniform vec2 scale;
  uniform vec2 focal;
  uniform vec2 middle;
  uniform vec2 size;
  uniform float last;
  uniform bool flatly;
  varying vec2 place;

  /* |m| of a ray at an angle to the axis; beyond the lens's end it goes on as it was. */
  float radius(float angle) {
    float at = angle / 3.14159265 * ${(ANGLES - 1).toFixed(1)};
    int below = int(at);
    float a = texelFetch(profile, ivec2(below, 0), 0).r;
    float b = texelFetch(profile, ivec2(min(below + 1, ${ANGLES - 1}), 0), 0).r;
    return mix(a, b, fract(at));
  }

  /* How far a value lies below an end, in pixels of the screen. */
  float below(float value, float end) {
    return (end - value) / max(fwidth(value), 1e-6);
  }

  void main() {
    vec3 seen = vec3(place / scale, 1.0);
    vec3 ray = turn * seen;
    vec2 m = ray.xy;
    float inside = 1.0;
    if (!flatly) {
      float r = length(ray.xy);
      float angle = atan(r, ray.z);
      inside = min(
        below(angle, last),
        below(length(seen), ${(1 / SMALLEST_COSINE).toFixed(6)}));
      m = ray.xy * (r > 1e-6 ? radius(angle) / r : 0.0);
      if (r <= 1e-6) m = ray.xy / max(ray.z, 1e-6);
    }
    vec2 pixel = middle + focal * m;
    vec2 within = min(pixel, size - pixel) / max(fwidth(pixel), 1e-6);
    float cover = clamp(0.5 + min(inside, min(within.x, within.y)), 0.0, 1.0);
    vec4 colour = texture2D(picture, pixel / size);
    if (cover == 0.0) discard;
    gl_FragColor = vec4(colour.rgb, cover);
    #include <colorspace_fragment>
  }`;

export class Comparison {
  /** canvas: where to draw. Throws where there is no WebGL. */
  constructor(canvas) {
    this.renderer = new WebGLRenderer({ canvas, alpha: true, antialias: true });
    this.renderer.setScissorTest(true);
    this.material = new MeshBasicMaterial({ side: DoubleSide, depthTest: false });
    this.uniforms = {
      picture: { value: null },
      profile: { value: table() },
      turn: { value: new Matrix3() },
      scale: { value: new Vector2() },
      focal: { value: new Vector2() },
      middle: { value: new Vector2() },
      size: { value: new Vector2() },
      last: { value: Math.PI },
      flatly: { value: false },
    };
    this.before = sheet(this.material);
    this.after = sheet(
      new ShaderMaterial({
        vertexShader: VERTEX,
        fragmentShader: FRAGMENT,
        uniforms: this.uniforms,
        transparent: true,
        depthTest: false,
        side: DoubleSide,
      }),
    );
    this.eye = new OrthographicCamera(0, 1, 0, 1, -1, 1);
    this.image = null;
  }

  /**
   * image: the photo, loaded; camera: of the photo as shown; size: (width, height) of the canvas in
   * device pixels; wipe: share of the width that shows the photo as it was.
   */
  draw(image, camera, gravity, kind, size, wipe) {
    this.#take(image);
    const [width, height] = size;
    const canvas = this.renderer.domElement;
    if (canvas.width !== width || canvas.height !== height) {
      this.renderer.setSize(width, height, false);
    }
    const show = plane(kind, camera, gravity);
    const anchor = show([camera.cx, camera.cy]) ?? [0, 0];
    const corner = [anchor[0] - camera.cx, anchor[1] - camera.cy];
    const frame = [corner, [corner[0] + camera.width, corner[1] + camera.height]];
    lay(this.before, frame);
    this.#look(union(frame, reach(camera, show), camera), width / height);
    lay(this.after, [
      [this.eye.left, this.eye.top],
      [this.eye.right, this.eye.bottom],
    ]);
    this.#warp(kind, camera, gravity);
    const border = Math.round(wipe * width);
    this.#render(this.before, 0, border, height);
    this.#render(this.after, border, width - border, height);
  }

  #take(image) {
    if (this.image === image) return;
    this.image = image;
    const scale = Math.min(1, LARGEST_TEXTURE / Math.max(image.naturalWidth, image.naturalHeight));
    const copy = document.createElement("canvas");
    copy.width = Math.max(1, Math.round(scale * image.naturalWidth));
    copy.height = Math.max(1, Math.round(scale * image.naturalHeight));
    copy.getContext("2d").drawImage(image, 0, 0, copy.width, copy.height);
    this.material.map?.dispose();
    this.material.map = new CanvasTexture(copy);
    this.material.map.flipY = false;
    this.material.map.colorSpace = SRGBColorSpace;
    this.material.map.anisotropy = 4;
    this.material.needsUpdate = true;
    this.uniforms.picture.value = this.material.map;
  }

  #warp(kind, camera, gravity) {
    const { turn, scale, flatly } = wayBack(kind, camera, gravity);
    const { uniforms } = this;
    uniforms.turn.value.fromArray(turn);
    uniforms.scale.value.set(...scale);
    uniforms.focal.value.set(camera.fx, camera.fy);
    uniforms.middle.value.set(camera.cx, camera.cy);
    uniforms.size.value.set(camera.width, camera.height);
    uniforms.flatly.value = flatly;
    if (flatly) return;
    const profile = uniforms.profile.value;
    const table = profile.image.data;
    let end = ANGLES - 1; // the last angle that the lens shows
    for (let i = 1; i < ANGLES; i++) {
      const angle = (Math.PI * i) / (ANGLES - 1);
      const rho = camera.model.radius(Math.sin(angle), Math.cos(angle), camera.distortion);
      if (i <= end && !(rho >= 0 && rho < FARTHEST)) end = i - 1;
      table[i] = i <= end ? rho : table[i - 1] + Math.max(1e-4, table[end] - table[end - 1]);
    }
    uniforms.last.value = (Math.PI * end) / (ANGLES - 1);
    profile.needsUpdate = true;
  }

  /** Fits the rectangle [[left, top], [right, bottom]] into the canvas. */
  #look([[left, top], [right, bottom]], aspect) {
    const [w, h] = [right - left, bottom - top];
    const half = [Math.max(w, h * aspect) / 2, Math.max(h, w / aspect) / 2];
    const middle = [(left + right) / 2, (top + bottom) / 2];
    Object.assign(this.eye, {
      left: middle[0] - half[0],
      right: middle[0] + half[0],
      top: middle[1] - half[1],
      bottom: middle[1] + half[1],
    });
    this.eye.updateProjectionMatrix();
  }

  #render(mesh, left, width, height) {
    this.renderer.setScissor(left, 0, width, height);
    this.renderer.render(mesh.parent, this.eye);
  }
}

function table() {
  const texture = new DataTexture(new Float32Array(ANGLES), ANGLES, 1, RedFormat, FloatType);
  texture.needsUpdate = true;
  return texture;
}

/** A rectangle with a picture on it. */
function sheet(material) {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(12), 3));
  geometry.setAttribute("uv", new BufferAttribute(new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), 2));
  geometry.setIndex([0, 1, 2, 1, 3, 2]);
  const mesh = new Mesh(geometry, material);
  mesh.frustumCulled = false;
  new Scene().add(mesh);
  return mesh;
}

function lay(mesh, [[left, top], [right, bottom]]) {
  const { position } = mesh.geometry.attributes;
  position.array.set([left, top, 0, right, top, 0, left, bottom, 0, right, bottom, 0]);
  position.needsUpdate = true;
}

/** What the pixels of a photo span on the plane of the new picture. */
function reach(camera, show) {
  const extent = [
    [Infinity, Infinity],
    [-Infinity, -Infinity],
  ];
  const count = CELLS + 1;
  const pixels = Array.from({ length: count ** 2 }, (_, i) => [
    ((i % count) * camera.width) / CELLS,
    (Math.floor(i / count) * camera.height) / CELLS,
  ]);
  const points = pixels.map(show);
  const widen = (point) => {
    for (const axis of [0, 1]) {
      extent[0][axis] = Math.min(extent[0][axis], point[axis]);
      extent[1][axis] = Math.max(extent[1][axis], point[axis]);
    }
  };
  points.forEach((point, i) => {
    if (point === null) return;
    widen(point);
    // Next to where the plane ends a cell of the photo spans much of it.
    const beside = [i % count > 0 && i - 1, i % count < CELLS && i + 1, i - count, i + count];
    for (const j of beside) {
      if (points[j] === null) widen(lastShown(show, point, pixels[i], pixels[j]));
    }
  });
  return extent;
}

/** The last point of the plane on the way from a pixel that it shows, as a point, to one that it
 * does not. */
function lastShown(show, point, from, to) {
  let [last, near, far] = [point, from, to];
  for (let i = 0; i < HALVINGS; i++) {
    const middle = [(near[0] + far[0]) / 2, (near[1] + far[1]) / 2];
    const found = show(middle);
    if (found === null) far = middle;
    else [last, near] = [found, middle];
  }
  return last;
}

function union(frame, extent, camera) {
  const room = [MOST_GROWTH * camera.width, MOST_GROWTH * camera.height];
  return [
    [0, 1].map((i) => Math.max(frame[0][i] - room[i], Math.min(frame[0][i], extent[0][i]))),
    [0, 1].map((i) => Math.min(frame[1][i] + room[i], Math.max(frame[1][i], extent[1][i]))),
  ];
}
