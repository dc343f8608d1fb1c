// The exact NLL of both machines, of their weights now and of their slow weights, drawn by uPlot.

import { theme } from "./pictures.js";

const POINTS = 600;
/** Nats, words, the side where they stand, and by how many pixels below the line. */
const REFERENCES = [
  [354.891, "untrained 354.9", "right", 14],
  [108.131, "best possible 108.1", "left", -5],
];

const short = (value) =>
  value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(value);

export class Chart {
  constructor(root, machines) {
    this.root = root;
    this.curves = machines.map(() => []);
    this.clock = "ticks";
    this.build();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
  }

  size() {
    const width = Math.max(this.root.clientWidth, 200);
    return { width, height: Math.round(Math.min(Math.max(width / 3.4, 200), 280)) };
  }

  build() {
    this.plot?.destroy();
    const colours = theme();
    const grid = { stroke: colours.line, width: 1 };
    const axis = { stroke: colours.faint, grid, ticks: grid, font: "12px system-ui, sans-serif" };
    const curve = (colour, width, alpha) => ({
      stroke: colour,
      width,
      alpha,
      spanGaps: true,
      points: { show: false },
    });
    const both = [colours.a, colours.b].flatMap((c) => [curve(c, 1.25, 0.75), curve(c, 2.75, 1)]);
    const options = {
      ...this.size(),
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false },
        y: { range: (_, low, high) => [100, Math.max(high ?? 0, 360)] },
      },
      axes: [
        { ...axis, values: (_, values) => values.map(short), size: 30 },
        { ...axis, size: 46 },
      ],
      series: [{}, ...both],
      padding: [8, 20, 0, 0],
      hooks: { draw: [(plot) => this.references(plot, colours)] },
    };
    this.plot = new uPlot(options, this.data(), this.root);
  }

  /** Lines where learning begins and where it could end. */
  references(plot, colours) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colours.faint;
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    for (const [value, words, side, below] of REFERENCES) {
      const y = plot.valToPos(value, "y", true);
      ctx.strokeStyle = colours.faint;
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      const margin = 4 * devicePixelRatio;
      const x = side === "left" ? bbox.left + margin : bbox.left + bbox.width - margin;
      ctx.textAlign = side;
      ctx.strokeStyle = colours.ground;
      ctx.lineWidth = 4 * devicePixelRatio;
      ctx.setLineDash([]);
      ctx.strokeText(words, x, y + below * devicePixelRatio);
      ctx.fillText(words, x, y + below * devicePixelRatio);
    }
    ctx.restore();
  }

  /** The curves over the clock, on one common axis. */
  data() {
    return uPlot.join(
      this.curves.map((points) => [
        points.map((p) => p.clocks[this.clock]),
        points.map((p) => p.now),
        points.map((p) => p.slow),
      ]),
    );
  }

  /** A point for a machine; when there are many, every second one goes. */
  add(machine, { clocks, now, slow }) {
    const points = this.curves[machine];
    points.push({ clocks, now: now.nll, slow: slow.nll });
    if (points.length > POINTS) this.curves[machine] = points.filter((_, i) => i % 2 === 0);
  }

  show(clock = this.clock) {
    this.clock = clock;
    this.plot.setData(this.data());
  }

  clear() {
    this.curves = this.curves.map(() => []);
    this.show();
  }
}
