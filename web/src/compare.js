/** A photo before and after it was made upright, rectified or undistorted, with a wipe between. */

import {
  BufferAttribute,
  BufferGeometry,
  CanvasTexture,
  DoubleSide,
  Mesh,
  MeshBasicMaterial,
  OrthographicCamera,
  Scene,
  SRGBColorSpace,
  WebGLRenderer,
} from "three";

import { gridTriangles } from "./scene.js";
import { plane } from "./warp.js";

const CELLS = 64;
const LARGEST_TEXTURE = 2048;
const MOST_GROWTH = 0.75; // of the photo's sides, that the new picture may reach beyond it

export class Comparison {
  /** canvas: where to draw. Throws where there is no WebGL. */
  constructor(canvas) {
    this.renderer = new WebGLRenderer({ canvas, alpha: true, antialias: true });
    this.renderer.setScissorTest(true);
    this.material = new MeshBasicMaterial({ side: DoubleSide, depthTest: false });
    [this.before, this.after] = [1, CELLS].map((cells) => sheet(cells, this.material));
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
    const still = ([u, v]) => [u - camera.cx + anchor[0], v - camera.cy + anchor[1]];
    const frame = [still([0, 0]), still([camera.width, camera.height])];
    spread(this.before, 1, camera, still);
    const extent = spread(this.after, CELLS, camera, show);
    this.#look(union(frame, extent, camera), width / height);
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

function sheet(cells, material) {
  const geometry = new BufferGeometry();
  const count = (cells + 1) ** 2;
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3));
  const uv = new Float32Array(2 * count);
  for (let i = 0; i < count; i++) {
    uv[2 * i] = (i % (cells + 1)) / cells;
    uv[2 * i + 1] = Math.floor(i / (cells + 1)) / cells;
  }
  geometry.setAttribute("uv", new BufferAttribute(uv, 2));
  const mesh = new Mesh(geometry, material);
  mesh.frustumCulled = false;
  new Scene().add(mesh);
  return mesh;
}

/** Moves the points of a sheet, leaves out cells that are not shown; what the rest spans. */
function spread(mesh, cells, camera, move) {
  const { position } = mesh.geometry.attributes;
  const shown = [];
  const extent = [
    [Infinity, Infinity],
    [-Infinity, -Infinity],
  ];
  for (let i = 0; i < position.count; i++) {
    const [column, row] = [i % (cells + 1), Math.floor(i / (cells + 1))];
    const point = move([(column * camera.width) / cells, (row * camera.height) / cells]);
    shown.push(point !== null);
    if (point === null) continue;
    position.setXYZ(i, ...point, 0);
    for (const axis of [0, 1]) {
      extent[0][axis] = Math.min(extent[0][axis], point[axis]);
      extent[1][axis] = Math.max(extent[1][axis], point[axis]);
    }
  }
  position.needsUpdate = true;
  const triangles = gridTriangles(cells, cells);
  const whole = (_, i) => {
    const first = 3 * Math.floor(i / 3);
    return [0, 1, 2].every((corner) => shown[triangles[first + corner]]);
  };
  mesh.geometry.setIndex(shown.every(Boolean) ? triangles : triangles.filter(whole));
  return extent;
}

function union(frame, extent, camera) {
  const room = [MOST_GROWTH * camera.width, MOST_GROWTH * camera.height];
  return [
    [0, 1].map((i) => Math.max(frame[0][i] - room[i], Math.min(frame[0][i], extent[0][i]))),
    [0, 1].map((i) => Math.min(frame[1][i] + room[i], Math.max(frame[1][i], extent[1][i]))),
  ];
}
