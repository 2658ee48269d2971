/**
 * The box and the ground in the photo, with three.js.
 *
 * The camera model bends points before three.js sees them, so that all eleven models are drawn by
 * the same few lines: three.js works in pixels of the picture, and the ground is found per fragment
 * from the ray of its pixel, which a mesh over the picture carries along.
 */

import {
  BufferAttribute,
  BufferGeometry,
  DoubleSide,
  Mesh,
  MeshBasicMaterial,
  OrthographicCamera,
  Scene,
  ShaderMaterial,
  ShapeUtils,
  Vector2,
  Vector3,
  WebGLRenderer,
} from "three";
import { LineMaterial } from "three/addons/lines/LineMaterial.js";
import { LineSegments2 } from "three/addons/lines/LineSegments2.js";
import { LineSegmentsGeometry } from "three/addons/lines/LineSegmentsGeometry.js";

import { pictureOf } from "./box.js";
import { levelFrame, toLevel } from "./vectors.js";

const AMBER = 0xffc400;
const CELLS = 40; // of the mesh that carries rays, each way
export const RING = [1.02, 1.22]; // radii of the handle that turns the box, in its sides

const GROUND_VERTEX = `
  attribute vec3 ray;
  varying vec3 way;
  void main() {
    way = ray;
    gl_Position = projectionMatrix * vec4(position, 1.0);
  }`;

const GROUND_FRAGMENT = `
  uniform vec2 foot;
  uniform vec2 axis;
  uniform float side;
  uniform float grid;
  uniform float box;
  uniform float glow;
  varying vec3 way;

  float line(vec2 place, float width) {
    vec2 slope = fwidth(place);
    vec2 near = abs(fract(place - 0.5) - 0.5) / slope;
    vec2 ink = (1.0 - smoothstep(width - 0.5, width + 0.5, near)) * (1.0 - smoothstep(0.15, 0.5, slope));
    return max(ink.x, ink.y);
  }

  void main() {
    if (way.y <= 0.0035) discard;
    vec2 ground = way.xz / way.y;
    vec2 apart = ground - foot;
    vec2 own = vec2(axis.y * ground.x - axis.x * ground.y, axis.x * ground.x + axis.y * ground.y) / side;
    vec2 local = vec2(axis.y * apart.x - axis.x * apart.y, axis.x * apart.x + axis.y * apart.y) / side;
    float away = length(local);
    float fade = 1.0 - smoothstep(2.0, 9.0, away);
    float ink = grid * fade * 0.85 * line(own, 0.7);
    vec2 edge = abs(local) - 0.5;
    float outside = length(max(edge, 0.0));
    float shade = box * 0.5 * (1.0 - smoothstep(0.0, 0.45, outside));
    float width = fwidth(away);
    float ring = box * smoothstep(0.0, 1.5 * width, away - ${RING[0].toFixed(2)})
      * (1.0 - smoothstep(0.0, 1.5 * width, away - ${RING[1].toFixed(2)}));
    vec3 colour = vec3(0.05, 0.06, 0.1);
    float alpha = shade;
    colour = mix(colour, vec3(1.0), ink);
    alpha = max(alpha, ink);
    float handle = ring * mix(0.42, 0.85, glow);
    colour = mix(colour, vec3(1.0, 0.77, 0.0), handle);
    alpha = max(alpha, handle);
    gl_FragColor = vec4(colour, alpha);
  }`;

/** One canvas for the whole page, laid over whatever is looked at: contexts of WebGL are dear. */
export class BoxScene {
  /** Throws where there is no WebGL. */
  constructor() {
    this.renderer = new WebGLRenderer({ alpha: true, antialias: true });
    this.canvas = this.renderer.domElement;
    this.canvas.className = "solid";
    this.canvas.setAttribute("aria-hidden", "true");
    this.scene = new Scene();
    this.eye = new OrthographicCamera(0, 1, 0, 1, -1, 1);
    this.ground = groundMesh();
    this.faces = [0, 1, 2].map(faceMesh);
    this.rim = edges(0x000000, 4.4, 0.5);
    this.seen = edges(AMBER, 2.4, 1);
    this.hidden = edges(AMBER, 1.2, 0.55);
    const parts = [this.ground, this.hidden, ...this.faces, this.rim, this.seen];
    parts.forEach((part, order) => {
      part.renderOrder = order;
      part.frustumCulled = false;
      this.scene.add(part);
    });
  }

  /** camera: of the canvas in device pixels; show: { box, ground }; glow: whether to mark the ring. */
  draw(camera, gravity, box, show, glow) {
    const { width, height } = camera;
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.renderer.setSize(width, height, false);
    }
    Object.assign(this.eye, { right: width, bottom: height });
    this.eye.updateProjectionMatrix();
    const picture = box && pictureOf(box, camera, gravity);
    this.#drawGround(camera, gravity, box, show, picture, glow);
    this.#drawBox(show.box ? picture : null, camera);
    this.renderer.render(this.scene, this.eye);
    return picture;
  }

  #drawGround(camera, gravity, box, show, picture, glow) {
    this.ground.visible = Boolean(box) && (show.box || show.ground);
    if (!this.ground.visible) return;
    const level = levelFrame(gravity);
    const { position, ray } = this.ground.geometry.attributes;
    for (let j = 0, i = 0; j <= CELLS; j++) {
      for (let k = 0; k <= CELLS; k++, i++) {
        const pixel = [(k * camera.width) / CELLS, (j * camera.height) / CELLS];
        position.setXYZ(i, ...pixel, 0);
        const way = camera.ray(pixel);
        ray.setXYZ(i, ...(way ? toLevel(level, way) : [0, -1, 0]));
      }
    }
    position.needsUpdate = ray.needsUpdate = true;
    const { uniforms } = this.ground.material;
    uniforms.foot.value.set(box.x, box.z);
    uniforms.axis.value.set(Math.sin(box.turn), Math.cos(box.turn));
    uniforms.side.value = box.side;
    uniforms.grid.value = show.ground ? 1 : 0;
    uniforms.box.value = show.box && picture ? 1 : 0;
    uniforms.glow.value = glow ? 1 : 0;
  }

  #drawBox(picture, camera) {
    const scale = Math.max(camera.width, camera.height) / 1000;
    for (const part of [...this.faces, this.rim, this.seen, this.hidden]) {
      part.visible = Boolean(picture);
    }
    if (!picture) return;
    this.faces.forEach((mesh, i) => {
      const face = picture.faces[i];
      mesh.visible = Boolean(face);
      if (!face) return;
      mesh.material.opacity = face.lid ? 0.5 : face.axis === 0 ? 0.38 : 0.26;
      fill(mesh, face.outline);
    });
    setEdges(this.rim, picture.seen, camera, scale);
    setEdges(this.seen, picture.seen, camera, scale);
    setEdges(this.hidden, picture.hidden, camera, scale);
  }
}

function groundMesh() {
  const geometry = new BufferGeometry();
  const count = (CELLS + 1) ** 2;
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3));
  geometry.setAttribute("ray", new BufferAttribute(new Float32Array(3 * count), 3));
  geometry.setIndex(gridTriangles(CELLS, CELLS));
  return new Mesh(
    geometry,
    new ShaderMaterial({
      vertexShader: GROUND_VERTEX,
      fragmentShader: GROUND_FRAGMENT,
      transparent: true,
      depthTest: false,
      side: DoubleSide,
      uniforms: {
        foot: { value: new Vector2() },
        axis: { value: new Vector2(0, 1) },
        side: { value: 1 },
        grid: { value: 1 },
        box: { value: 1 },
        glow: { value: 0 },
      },
    }),
  );
}

/** Indices of two triangles per cell of a lattice of (columns + 1) × (rows + 1) points. */
export function gridTriangles(columns, rows) {
  const triangles = [];
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) {
      const a = j * (columns + 1) + i;
      const [b, c, d] = [a + 1, a + columns + 1, a + columns + 2];
      triangles.push(a, b, c, b, d, c);
    }
  }
  return triangles;
}

function faceMesh() {
  const material = new MeshBasicMaterial({
    color: AMBER,
    transparent: true,
    depthTest: false,
    side: DoubleSide,
  });
  return new Mesh(new BufferGeometry(), material);
}

function fill(mesh, outline) {
  const contour = outline.map(([x, y]) => new Vector2(x, y));
  const triangles = ShapeUtils.triangulateShape(contour, []);
  mesh.geometry.setFromPoints(contour.map(({ x, y }) => new Vector3(x, y, 0)));
  mesh.geometry.setIndex(triangles.flat());
}

function edges(color, linewidth, opacity) {
  const material = new LineMaterial({ color, opacity, transparent: true, depthTest: false });
  const lines = new LineSegments2(new LineSegmentsGeometry(), material);
  lines.userData.width = linewidth;
  return lines;
}

function setEdges(lines, curves, camera, scale) {
  lines.visible = lines.visible && curves.length > 0;
  if (!lines.visible) return;
  const positions = [];
  for (const curve of curves) {
    for (let i = 1; i < curve.length; i++) {
      positions.push(...curve[i - 1], 0, ...curve[i], 0);
    }
  }
  lines.geometry.dispose();
  lines.geometry = new LineSegmentsGeometry().setPositions(positions);
  lines.material.linewidth = lines.userData.width * scale;
  lines.material.resolution.set(camera.width, camera.height);
}
