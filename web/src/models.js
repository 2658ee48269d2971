/**
 * The camera models of docs/cameras.md, as far as drawing needs them. Each is one radial profile:
 *
 *   radius(r, z, k)  |m| of a ray with r = |(X, Y)| and Z = z, NaN where it has no pixel
 *   depth(s, k)      z of the ray (m, z) of a pixel with s = |m|², NaN where it has no ray
 *
 * m are normalised coordinates (docs/conventions.md). tests/page/test_page_geometry.py holds each to
 * its counterpart in geocalib.cameras.
 */

const STEPS = 80;
const PRECISION = 1e-12; // far below a pixel's, and quicker than all digits

/** Where a function that rises through 0 on [0, end] does so; end may be infinite. */
function root(rises, end) {
  let low = 0;
  let high = end;
  if (!Number.isFinite(end)) {
    high = 1;
    while (rises(high) < 0 && high < 1e9) high *= 2;
  }
  for (let step = 0; step < STEPS && high - low > PRECISION * high; step++) {
    const middle = 0.5 * (low + high);
    if (rises(middle) < 0) low = middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}

/** Σ cᵢ xⁱ. */
const polynomial = (c, x) => c.reduceRight((sum, coefficient) => sum * x + coefficient, 0);

/** Where Σ cᵢ xⁱ changes sign on (0, end), ascending: between two zeros of its slope at most once. */
function signChanges(c, end) {
  if (c.length < 2) return [];
  const slope = c.slice(1).map((coefficient, i) => (i + 1) * coefficient);
  const marks = [0, ...signChanges(slope, end), end];
  const found = [];
  for (let i = 1; i < marks.length; i++) {
    const [a, b] = [polynomial(c, marks[i - 1]), polynomial(c, marks[i])];
    if (a * b >= 0) continue;
    const sign = Math.sign(b);
    const width = marks[i] - marks[i - 1];
    found.push(marks[i - 1] + root((x) => sign * polynomial(c, marks[i - 1] + x), width));
  }
  return found;
}

/** x d(x²), d(X) = 1 + k₁ X + k₂ X² + …, up to where it stops growing. */
function oddPolynomial(k, farthest) {
  const d = [1, ...k];
  const slope = d.map((coefficient, i) => (2 * i + 1) * coefficient);
  const end = Math.sqrt(signChanges(slope, farthest * farthest)[0] ?? Infinity);
  const factor = (x) => polynomial(d, x * x);
  const value = (x) => x * factor(x);
  const limit = Math.min(end, farthest);
  return { factor, value, limit, invert: (rho) => root((x) => value(x) - rho, limit) };
}

const FAR = 1e4; // tangents beyond this are 90 degrees

/** Of the last parameters asked for: one photo is drawn with the same ones, point after point. */
function remembered(make) {
  let key = null;
  let made = null;
  return (k) => {
    if (key === null || k.length !== key.length || k.some((value, i) => value !== key[i])) {
      [key, made] = [[...k], make(k)];
    }
    return made;
  };
}

const TIP = 1e-3; // of w = √(x² + TIP²) − TIP, which has a derivative where x has none

/** x d(w), d(w) = 1 + k₁ w + k₂ w² + …, up to where it stops growing. */
function ptlensPolynomial(k, farthest) {
  const d = [1, ...k];
  const factor = (x) => polynomial(d, (x * x) / (Math.hypot(x, TIP) + TIP));
  const value = (x) => x * factor(x);
  // The slope times w + TIP, in w.
  const slope = [...d, 0].map(
    (coefficient, i) => (2 * i + 1) * TIP * coefficient + i * (d[i - 1] ?? 0),
  );
  const w = signChanges(slope, farthest)[0] ?? Infinity;
  const limit = Math.min(Math.sqrt(w * (w + 2 * TIP)), farthest);
  return { factor, value, limit, invert: (rho) => root((x) => value(x) - rho, limit) };
}

function tangentPolynomial(made = oddPolynomial) {
  const of = remembered((k) => made(k, FAR));
  return {
    wide: false,
    radius(r, z, k) {
      const curve = of(k);
      const x = r / z;
      return z > 0 && x <= curve.limit ? curve.value(x) : NaN;
    },
    depth(s, k) {
      const curve = of(k);
      const rho = Math.sqrt(s);
      if (rho >= curve.value(curve.limit)) return NaN;
      return curve.factor(curve.invert(rho));
    },
  };
}

const pinhole = {
  wide: false,
  radius: (r, z) => (z > 0 ? r / z : NaN),
  depth: () => 1,
};

const division = {
  wide: false,
  radius(r, z, [k]) {
    const discriminant = z * z - 4 * k * r * r;
    if (discriminant < 0) return NaN;
    const square = Math.sqrt(discriminant);
    if (z > 0) return (2 * r) / (z + square);
    return k * r < 0 ? (z - square) / (2 * k * r) : NaN;
  },
  depth: (s, [k]) => (k * s < 1 ? 1 + k * s : NaN),
};

const division2 = {
  wide: false,
  end([k1, k2]) {
    const discriminant = k1 * k1 + 12 * k2;
    const denominator = k1 + Math.sqrt(Math.max(discriminant, 0));
    return discriminant >= 0 && denominator > 0 ? 2 / denominator : Infinity;
  },
  radius(r, z, k) {
    const end = Math.sqrt(this.end(k));
    const length = Math.hypot(r, z);
    const [R, Z] = [r / length, z / length];
    const profile = (rho) => 1 + rho * rho * (k[0] + k[1] * rho * rho);
    const open = k[0] < 0 || k[1] < 0 ? Math.PI : Math.PI / 2;
    const limit = Number.isFinite(end) ? Math.atan2(end, profile(end)) : open;
    if (Math.atan2(r, z) > limit) return NaN;
    return root((rho) => rho * Z - R * profile(rho), end);
  },
  depth(s, k) {
    return s < this.end(k) ? polynomial([1, ...k], s) : NaN;
  },
};

const fisheye = remembered((k) => oddPolynomial(k, Math.PI));

const kannalaBrandt = {
  wide: true,
  radius(r, z, k) {
    const curve = fisheye(k);
    const angle = Math.atan2(r, z);
    return angle <= curve.limit ? curve.value(angle) : NaN;
  },
  depth(s, k) {
    const curve = fisheye(k);
    const rho = Math.sqrt(s);
    if (rho >= curve.value(curve.limit)) return NaN;
    const angle = curve.invert(rho);
    return curve.factor(angle) * (angle > 1e-9 ? angle / Math.tan(angle) : 1);
  },
};

const eucm = {
  wide: true,
  radius(r, z, [alpha, beta]) {
    const larger = Math.max(alpha, 1 - alpha);
    const d = Math.sqrt(beta * r * r + z * z);
    if (z <= (-(1 - larger) / larger) * d) return NaN;
    return r / (alpha * d + (1 - alpha) * z);
  },
  depth(s, [alpha, beta]) {
    const under = 1 - (2 * alpha - 1) * beta * s;
    if (under <= 0) return NaN;
    return (1 - beta * alpha * alpha * s) / (alpha * Math.sqrt(under) + 1 - alpha);
  },
};

const ucm = {
  wide: true,
  radius: (r, z, [alpha]) => eucm.radius(r, z, [alpha, 1]),
  depth: (s, [alpha]) => eucm.depth(s, [alpha, 1]),
};

const doubleSphere = {
  wide: true,
  radius: (r, z, [xi, alpha]) => ucm.radius(r, xi * Math.hypot(r, z) + z, [alpha]),
  depth(s, [xi, alpha]) {
    const h = ucm.depth(s, [alpha]);
    const shrink = 1 - xi * xi;
    return (h - xi * Math.sqrt(h * h + shrink * s)) / shrink;
  },
};

export const MODELS = {
  pinhole,
  simple_radial: tangentPolynomial(),
  radial: tangentPolynomial(),
  radial3: tangentPolynomial(),
  radial4: tangentPolynomial(),
  ptlens: tangentPolynomial(ptlensPolynomial),
  division,
  division2,
  kannala_brandt: kannalaBrandt,
  ucm,
  eucm,
  double_sphere: doubleSphere,
};
