/**
 * Lines that a person drew on a photo, as requests hold them: { x0, y0, x1, y1, kind, to }, in pixels
 * of the photo. `to` is a parallel's alone: the number, from 1, of a line before it. Among them may be
 * one of the kind "ruler", a known length: { metres, along }, along "ground", or "up" of what stands.
 *
 * Nothing here changes what it is given.
 */

export const KINDS = { up: "upright", level: "level", parallel: "parallel", horizon: "horizon" };

export const endsOf = ({ x0, y0, x1, y1 }) => [[x0, y0], [x1, y1]];

/** kind and the rest: of the line between two ends. */
export const lineOf = ([[x0, y0], [x1, y1]], { kind, to, metres, along }) => ({
  x0,
  y0,
  x1,
  y1,
  kind,
  ...(kind === "parallel" && { to }),
  ...(kind === "ruler" && { metres, along }),
});

/** Where the ruler is among them; -1: there is none. */
export const rulerAt = (lines) => lines.findIndex(({ kind }) => kind === "ruler");

/** The number, from 1, that a line has for people and in answers, which do not count the ruler. */
export const numberOf = (lines, index) =>
  lines.slice(0, index + 1).filter(({ kind }) => kind !== "ruler").length;

/** The lines and the ruler as requests hold them. */
export function asked(lines) {
  const at = rulerAt(lines);
  const drawn = at < 0 ? lines : without(lines, at);
  const { along: kind, ...ruler } = lines[at] ?? {};
  return { ...(drawn.length > 0 && { drawn }), ...(at >= 0 && { ruler: { ...ruler, kind } }) };
}

/** What became of each line, by an answer to these lines; null of the ruler, or if it is older. */
export function checksOf(lines, checks = []) {
  const rest = [...checks];
  const fits = lines.filter(({ kind }) => kind !== "ruler").length === rest.length;
  return lines.map(({ kind }) => (fits && kind !== "ruler" ? rest.shift() : null));
}

/** The kind of the line whose direction this one has: its own, unless it is a parallel. */
export function kindOfWorld(lines, line) {
  return line.kind === "parallel" ? kindOfWorld(lines, lines[line.to - 1]) : line.kind;
}

/** All but one. The first of those that were parallel to it takes its place among the others. */
export function without(lines, index) {
  const gone = lines[index];
  const heir = lines.findIndex(({ to }) => to === index + 1);
  const rest = lines.map((line, i) => {
    if (i === heir) return lineOf(endsOf(line), gone);
    return line.to === index + 1 ? { ...line, to: heir + 1 } : line;
  });
  rest.splice(index, 1);
  return rest.map((line) => (line.to > index + 1 ? { ...line, to: line.to - 1 } : line));
}

/** On the photo turned by a quarter, clockwise. height: of the photo before. */
export const turnedLines = (lines, height) =>
  lines.map((line) => lineOf(endsOf(line).map(([x, y]) => [height - y, x]), line));

/** How far a pixel is from a line between its ends. */
export function distanceTo(line, [x, y]) {
  const [dx, dy] = [line.x1 - line.x0, line.y1 - line.y0];
  const along = ((x - line.x0) * dx + (y - line.y0) * dy) / Math.max(dx * dx + dy * dy, 1e-9);
  const share = Math.min(1, Math.max(0, along));
  return Math.hypot(x - line.x0 - share * dx, y - line.y0 - share * dy);
}
