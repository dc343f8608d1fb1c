// Pictures of units, weights and samples, and the ribbon of phases, as sharp as the screen.

/** The colours of the moment, from the style sheet: light or dark. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "soft", "text", "faint", "line", "positive", "negative", "a", "b"];
  return Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** Colours between two, as many as are told apart: share in [0, 1] -> CSS colour. */
function ramp(from, to, levels = 64) {
  const [a, b] = [rgb(from), rgb(to)];
  const mixed = Array.from({ length: levels + 1 }, (_, k) => {
    const part = (i) => Math.round(a[i] + ((b[i] - a[i]) * k) / levels);
    return `rgb(${part(0)} ${part(1)} ${part(2)})`;
  });
  return (share) => mixed[Math.round(levels * Math.min(Math.max(share, 0), 1))];
}

/** A canvas that draws what it was last shown, again when its size or the colours change. */
export class Picture {
  constructor(canvas, paint) {
    Object.assign(this, { canvas, paint, shown: null });
    this.context = canvas.getContext("2d");
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    this.recolour();
  }

  recolour() {
    const colours = theme();
    this.colours = colours;
    this.ink = ramp(colours.soft, colours.text);
    this.plus = ramp(colours.soft, colours.positive);
    this.minus = ramp(colours.soft, colours.negative);
    this.draw();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    this.draw();
  }

  show(shown) {
    this.shown = shown;
    this.draw();
  }

  draw() {
    const { width, height } = this.canvas;
    if (!this.shown || !width) return;
    this.context.clearRect(0, 0, width, height);
    this.paint(this, this.shown, width, height);
  }
}

/** A square of side x side cells, its corner at (left, top); fill(i) is the colour of cell i. */
function square(context, left, top, size, side, gap, fill) {
  const cell = (size - (side - 1) * gap) / side;
  for (let i = 0; i < side * side; i++) {
    const x = left + (i % side) * (cell + gap);
    const y = top + Math.floor(i / side) * (cell + gap);
    const [x0, y0] = [Math.round(x), Math.round(y)];
    context.fillStyle = fill(i);
    context.fillRect(x0, y0, Math.round(x + cell) - x0, Math.round(y + cell) - y0);
  }
}

/** `count` small squares in rows of `columns`; paintOne(k, left, top, size) draws one. */
function tiles(width, count, columns, paintOne) {
  const between = width * 0.035;
  const size = (width - (columns - 1) * between) / columns;
  for (let k = 0; k < count; k++) {
    const [x, y] = [k % columns, Math.floor(k / columns)].map((n) => n * (size + between));
    paintOne(k, x, y, size);
  }
}

/** Units of a layer: {values, sign}; the sign of the phase is the colour of units that are on. */
export function paintUnits({ context, ink, plus, minus }, { values, sign }, width) {
  const colour = { 1: plus, "-1": minus }[sign] ?? ink;
  square(context, 0, 0, width, 4, width * 0.04, (i) => colour(values[i]));
}

/** The fields of 16 hidden units, W[:, j] as 4 x 4 weights: blue excites, orange inhibits. */
export function paintFields({ context, plus, minus }, { W }, width) {
  const largest = W.reduce((most, w) => Math.max(most, Math.abs(w)), 0.1);
  const colour = (w) => (w > 0 ? plus : minus)(Math.abs(w) / largest);
  tiles(width, 16, 4, (j, x, y, size) => {
    square(context, x, y, size, 4, 0, (i) => colour(W[16 * i + j]));
  });
}

/** Samples as numbers of states; those that are no Bars and Stripes are pale. */
export function paintSamples({ context, ink }, { samples, known }, width) {
  tiles(width, samples.length, 4, (k, x, y, size) => {
    const strong = known.has(samples[k]) ? 1 : 0.35;
    square(context, x, y, size, 4, 0, (i) => ink((samples[k] >> i) & 1 ? strong : 0));
  });
}

/**
 * The ribbon: positive phases above the line, negative ones below. The full colour says where the
 * rule learns, and how strongly: at every tick, or at ends of phases only.
 */
export function paintRibbon({ context, colours }, { phases, rule, from, to }, width, height) {
  const middle = height / 2;
  const place = (tick) => ((tick - from) / (to - from)) * width;
  const strongest = phases.reduce((most, p) => Math.max(most, 1 / p.prob), 2);
  for (const phase of phases) {
    const left = Math.max(place(phase.start), 0);
    const right = place(Math.min(phase.end, to));
    const colour = phase.sign > 0 ? colours.positive : colours.negative;
    const up = (share) => (phase.sign > 0 ? -1 : 1) * share * (middle - 1);
    const gap = right - left > 4 * devicePixelRatio ? devicePixelRatio : 0;
    context.globalAlpha = 0.28;
    context.fillStyle = colour;
    context.fillRect(left, middle, right - left - gap, up(1));
    context.globalAlpha = 1;
    const strength = 1 / phase.prob / strongest;
    if (rule === "aol") context.fillRect(left, middle, right - left - gap, up(strength));
    if (rule === "aol" || phase.end > to) continue;
    const stem = Math.min(3 * devicePixelRatio, Math.max(right - left - gap, 1));
    if (rule === "isd") context.fillRect(right - gap - stem, middle, stem, up(strength));
    if (rule === "two-term" && phase.sign < 0) {
      context.fillStyle = colours.text;
      context.fillRect(right - gap - stem, middle - 0.6 * middle, stem, 1.2 * middle);
    }
  }
  context.fillStyle = colours.text;
  context.fillRect(0, middle - devicePixelRatio / 2, width, devicePixelRatio);
}
