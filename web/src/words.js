/** An answer in words and in rows of numbers: text, for everybody to read. */

import { Camera } from "./camera.js";
import { KINDS } from "./lines.js";
import { degrees, gravityOf } from "./vectors.js";

/** Names of the camera models for people, in the order of the menu. */
export const LENSES = {
  auto: "Whichever fits best",
  pinhole: "Pinhole: bends nothing",
  simple_radial: "Radial, 1 parameter",
  radial: "Radial, 2 parameters",
  radial3: "Radial, 3 parameters",
  radial4: "Radial, 4 parameters",
  ptlens: "PTLens, as in Lensfun",
  division: "Division, 1 parameter",
  division2: "Division, 2 parameters",
  kannala_brandt: "Fisheye (Kannala-Brandt)",
  ucm: "Wide (unified)",
  eucm: "Wide (enhanced unified)",
  double_sphere: "Wide (double sphere)",
};

const PARAMETERS = {
  simple_radial: ["k₁"],
  radial: ["k₁", "k₂"],
  radial3: ["k₁", "k₂", "k₃"],
  radial4: ["k₁", "k₂", "k₃", "k₄"],
  ptlens: ["k₁", "k₂", "k₃"],
  division: ["k"],
  division2: ["k₁", "k₂"],
  kannala_brandt: ["k₁", "k₂", "k₃", "k₄"],
  ucm: ["α"],
  eucm: ["α", "β"],
  double_sphere: ["ξ", "α"],
};

/** The record as it is with what is known in place: the fit will not change that. */
export function withKnown(record, known) {
  const changed = { ...record };
  if (known.focal !== undefined) {
    changed.fx = (known.focal * record.fx) / record.fy;
    changed.fy = known.focal;
    const chosen = (record.lens ?? []).length > 0; // by the program, as answers say
    Object.assign(changed, new Camera(changed).fieldsOfView(chosen));
  }
  if (known.roll !== undefined || known.pitch !== undefined) {
    changed.roll_deg = known.roll ?? record.roll_deg;
    changed.pitch_deg = known.pitch ?? record.pitch_deg;
    changed.gravity = gravityOf(changed.roll_deg, changed.pitch_deg);
  }
  return changed;
}

/** All that a picture of a photo follows from: equal lists, equal pictures. */
export const appearance = (photo) => [
  photo,
  photo.image,
  photo.record,
  photo.fields,
  photo.error,
  JSON.stringify(photo.known),
];

const QUANTITIES = { focal: "focal length" };
const CONTRADICTS = 3; // sigmas, beyond which a warning is given

const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
const plus = (value, digits) => (value >= 0 ? "+" : "") + fixed(value, digits);

/** As many digits as a sigma leaves meaning to: two of the sigma's own. */
function digitsOf(sigma, most) {
  if (!(sigma > 0)) return most;
  return Math.max(0, Math.min(most, 1 - Math.floor(Math.log10(sigma))));
}

function row(name, value, sigma, { unit = "", sign = false, most = 2 } = {}) {
  if (value === null || value === undefined) return { name, value: "unknown", sigma: "" };
  const digits = digitsOf(sigma, most);
  const spread = sigma === 0 ? "given" : sigma === null ? "" : `± ${fixed(sigma, digits)}${unit}`;
  return { name, value: (sign ? plus : fixed)(value, digits) + unit, sigma: spread };
}

const heightRow = ({ camera_height: height, camera_height_sigma: sigma }) =>
  row("Camera above the ground", height, sigma, { unit: " m", most: 3 });

/** Rows of the table of numbers: { name, value, sigma }. */
export function rows(record, known = {}) {
  // An angle that is held while the other is free has a sigma all the same, of no meaning.
  const sigma = { ...record.sigma };
  if ("roll" in known) sigma.roll_deg = 0;
  if ("pitch" in known) sigma.pitch_deg = 0;
  const camera = new Camera(record);
  const mm = camera.millimetres;
  const bends = PARAMETERS[record.camera_model] ?? [];
  return [
    row("Roll", record.roll_deg, sigma.roll_deg, { unit: "°", sign: true }),
    row("Pitch", record.pitch_deg, sigma.pitch_deg, { unit: "°", sign: true }),
    row("Field of view, vertical", record.vfov_deg, sigma.vfov_deg, { unit: "°", most: 1 }),
    row("Field of view, horizontal", record.hfov_deg, sigma.hfov_deg, { unit: "°", most: 1 }),
    row("Focal length", record.fy, sigma.focal, { unit: " px", most: 1 }),
    row("as on full frame", camera.equivalent, sigma.focal === null ? null : sigma.focal * mm, {
      unit: " mm",
      most: 1,
    }),
    ...(record.ruler ? [heightRow(record.ruler)] : []),
    ...bends.map((name, i) =>
      row(`Distortion ${name}`, record.distortion[i], sigma.distortion[i], { sign: true, most: 4 }),
    ),
  ];
}

/** What the camera did, in one sentence. */
export function sentence(record) {
  const { roll_deg: roll, pitch_deg: pitch } = record;
  const lean =
    Math.abs(roll) < 0.25
      ? "Held level"
      : `Turned ${fixed(Math.abs(roll), 1)}° ${roll > 0 ? "clockwise" : "counter-clockwise"}`;
  const look =
    Math.abs(pitch) < 0.25
      ? "looking straight ahead"
      : `looking ${fixed(Math.abs(pitch), 1)}° ${pitch > 0 ? "up" : "down"}`;
  const mm = new Camera(record).equivalent;
  const length = fixed(mm, mm < 20 ? 1 : 0);
  return `${lean}, ${look}, through ${articleOf(length)} ${length} mm lens.`;
}

/** "a" or "an", as a number is spoken: an eight, an eleven, an eighteen. */
const articleOf = (number) => (/^(8|11(\D|$)|18(\D|$))/.test(number) ? "an" : "a");

/** A warning with the page's own names for lines, and means to do what it advises. */
const here = (warning) =>
  warning
    .replace(/^(line \d+) \(up\)/i, "$1 (upright)")
    .replace("turn it, or set any rotation to on", "turn it with the button above the photo")
    .replace("set any rotation to off", "hold its roll at 0");

/** Why a file gave no answer, beside its name. */
export const failureWords = (error) => capital(error.replace(/^image is/, "this file is"));

/** Whether to believe it: { trusted, text, doubts }. */
export function verdict(record) {
  const doubts = record.warnings.map((warning) => capital(here(warning)));
  const trusted = doubts.length === 0;
  return {
    trusted,
    text: trusted ? "Nothing speaks against this answer." : "Take this with care.",
    doubts,
  };
}

/** What straight lines and sensors had to say. */
export function remarks(record) {
  const found = [];
  const [best, ...others] = record.lens ?? [];
  if (best) {
    const behind = others.find(({ probability }) => probability >= 0.01);
    const next = behind ? `, ${family(behind)} with ${percent(behind)}` : "";
    found.push(`Lens: ${family(best)} fits best, with ${percent(best)}${next}.`);
  }
  const lines = record.lines?.verdict ?? "looked at again when the slider rests";
  found.push(`Straight lines: ${lines}.`);
  // What contradicts the picture is among the doubts.
  const agreeing = record.priors.filter(({ tension }) => !(tension > CONTRADICTS));
  for (const prior of agreeing) {
    const given = prior.source === "given";
    if (given && prior.tension === null) continue;
    const what = QUANTITIES[prior.quantity] ?? prior.quantity;
    const far = prior.tension === null ? "" : `, ${fixed(prior.tension, 1)} sigma apart`;
    const says = given
      ? `The given ${what} agrees with ${prior.against ?? "the picture"}`
      : `${capital(prior.source)} tells the ${what}: ${prior.used ? "used" : "not used"}`;
    found.push(`${says}${far}.`);
  }
  return found;
}

/** A drawn line, and what became of it. check: as the record has it, if it has it already; number,
 * to: its own, and of the line that it is parallel to. */
export function drawnWords({ kind, metres, along }, check, number, to) {
  if (kind === "ruler") return `Ruler, ${metres} m ${along === "up" ? "upright" : "on the ground"}`;
  const name = `Line ${number}, ${kind === "parallel" ? `parallel to ${to}` : KINDS[kind]}`;
  if (!check) return name;
  const off = `${fixed(check.off_deg, 1)}° off`;
  return check.used ? `${name}: ${off}` : `${name}: not followed, ${off}`;
}

const family = ({ camera_model: model }) => LENSES[model].split(/[:,(]/)[0].trim().toLowerCase();
const percent = ({ probability }) => `${fixed(100 * probability, 0)}%`;
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Where the box stands, in words. */
export function boxWords({ x, z, side, turn }) {
  const across = Math.abs(x) < 0.05 ? "" : `, ${fixed(Math.abs(x), 1)} to the ${x > 0 ? "right" : "left"}`;
  const angle = ((degrees(turn) % 90) + 90) % 90;
  return `The box stands ${fixed(z, 1)} camera heights ahead${across}, turned ${fixed(angle, 0)}°, ${fixed(side, 2)} high.`;
}

/** Where photos go from here, by the host that the page came from. */
export function whereTo(host) {
  if (/^(localhost|127(\.\d+){3}|\[::1\])$/.test(host)) return "Nothing leaves this machine";
  return `Photos go to ${host}, which keeps none, and nowhere else`;
}
