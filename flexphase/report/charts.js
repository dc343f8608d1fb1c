// Every <figure class="curve" data-panel="i,j"> becomes a chart of panel j of figure i of the
// page's data, drawn by uPlot: drag to zoom, double-click to go back, buttons for the same and for
// log axes.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const DASH = [[], [7, 4], [2, 3], [8, 3, 2, 3]];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A number in at most four digits, with a letter for thousands and more. */
function words(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  return String(+value.toPrecision(4));
}

class PanelChart {
  constructor(root, panel) {
    Object.assign(this, { root, panel, hidden: new Set(), log: { x: panel.logx, y: panel.logy } });
    this.place = root.querySelector(".chart");
    this.readout = root.querySelector(".readout");
    if (panel.series.length > 2) this.readout.style.minHeight = "2.8em";
    this.legend(root.querySelector(".legend"));
    for (const button of root.querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => this.act(button));
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.place);
    this.build();
  }

  legend(list) {
    this.panel.series.forEach((s, i) => {
      if (!s.name) return;
      const button = Object.assign(document.createElement("button"), { type: "button" });
      button.setAttribute("aria-pressed", "true");
      button.innerHTML = `<svg width="26" height="8" aria-hidden="true"><line x2="26" y1="4" y2="4"
        stroke="var(--c${s.colour})" stroke-width="2.5" stroke-dasharray="${DASH[s.line]}"/></svg>`;
      button.append(` ${s.name}`);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(i)) this.hidden.add(i);
        button.setAttribute("aria-pressed", String(!this.hidden.has(i)));
        this.build();
      });
      list.append(button);
    });
  }

  act(button) {
    const what = button.dataset.do;
    if (what === "reset") return this.build();
    if (what === "in" || what === "out") return this.zoom(what === "in" ? 0.6 : 1 / 0.6);
    this.log[what] = !this.log[what];
    button.setAttribute("aria-pressed", String(this.log[what]));
    this.build();
  }

  /** Around the middle; on a log axis in decades. */
  zoom(factor) {
    this.plot.batch(() => {
      for (const axis of ["x", "y"]) {
        const [to, from] = this.log[axis] ? [Math.log10, (v) => 10 ** v] : [(v) => v, (v) => v];
        const { min, max } = this.plot.scales[axis];
        const [low, high] = [to(min), to(max)];
        const [middle, half] = [(low + high) / 2, (factor * (high - low)) / 2];
        this.plot.setScale(axis, { min: from(middle - half), max: from(middle + half) });
      }
    });
  }

  size() {
    return { width: Math.max(this.place.clientWidth, 200), height: 320 };
  }

  /** x, then y, y + sd and y - sd of every shown series, on one common x axis. */
  data() {
    const fits = (axis) => (v) => (v === null || (this.log[axis] && v <= 0) ? null : v);
    const positive = this.shown.flatMap((s) => s.y).filter((v) => v > 0);
    const floor = this.log.y ? Math.min(...positive) / 10 : -Infinity;
    const tables = this.shown.map((s) => {
      const keep = s.x.map((v) => fits("x")(v) !== null);
      const column = (values) => values.filter((_, i) => keep[i]);
      const end = (k) =>
        s.y.map((v, i) => (v === null ? null : Math.max(v + k * (s.sd?.[i] ?? 0), floor)));
      return [column(s.x), column(s.y.map(fits("y"))), column(end(1)), column(end(-1))];
    });
    return tables.length ? uPlot.join(tables) : [[], []];
  }

  build() {
    this.plot?.destroy();
    this.shown = this.panel.series.filter((_, i) => !this.hidden.has(i));
    const data = this.data();
    const curves = this.shown.flatMap((s) => this.curves(s));
    const bands = this.shown.flatMap((s, i) => {
      const fill = css(`--c${s.colour}`) + "30";
      return s.sd && s.kind === "line" ? [{ series: [3 * i + 2, 3 * i + 3], fill }] : [];
    });
    this.plot = new uPlot(
      {
        ...this.size(),
        legend: { show: false },
        cursor: {
          drag: { x: true, y: true, uni: 20 },
          points: { show: false },
          bind: { dblclick: () => () => this.build() },
        },
        scales: { x: this.scale("x"), y: this.scale("y") },
        axes: [this.named(this.axis(32)), { ...this.axis(52), label: this.panel.y, labelSize: 18 }],
        series: [{}, ...(curves.length ? curves : [{}])],
        bands,
        padding: [10, 14, 0, 0],
        hooks: {
          drawAxes: [(u) => this.shades(u)],
          draw: [(u) => this.marks(u)],
          setCursor: [(u) => this.read(u)],
          setScale: [(u) => this.note(u)],
        },
      },
      data,
      this.place,
    );
    this.place.querySelector("canvas").setAttribute("aria-hidden", "true");
    this.note(this.plot);
  }

  curves({ colour, line, kind }) {
    const stroke = css(`--c${colour}`);
    const end = { stroke: "transparent", width: 0, points: { show: false } };
    const paths = kind === "steps" ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
    const points = { show: kind === "points" || kind === "dots", size: 7, fill: stroke };
    const width = kind === "dots" ? 0 : 1.8;
    return [{ stroke, width, dash: DASH[line], paths, points }, end, end];
  }

  scale(axis) {
    const common = { time: false, distr: this.log[axis] ? 3 : 1 };
    const { ylim } = this.panel;
    if (axis === "x")
      return { ...common, range: (u, low, high) => this.padded(u.data[0], low, high) };
    if (!ylim || this.log.y) return common;
    return {
      ...common,
      auto: false,
      min: ylim[0],
      max: ylim[1],
      range: (_, low, high) => [low, high],
    };
  }

  /** All of the data does not touch the frame; a part that was zoomed to is taken as it is. */
  padded(x, low, high) {
    if (low !== x[0] || high !== x.at(-1)) return [low, high];
    const pad = (this.log.x ? Math.log(high / low) : high - low) * 0.03 || 1;
    return this.log.x ? [low * Math.exp(-pad), high * Math.exp(pad)] : [low - pad, high + pad];
  }

  /** Without a label: the one of x is text below the chart, where it has room. */
  axis(size) {
    const grid = { stroke: css("--grid"), width: 1 };
    const values = (_, splits) => splits.map((v) => (v === null ? "" : words(v)));
    const font = "12px system-ui, sans-serif";
    return { stroke: css("--text"), grid, ticks: grid, values, size, font, labelFont: font };
  }

  /** The x axis with names in place of numbers, where the panel has them. */
  named(axis) {
    const { names } = this.panel;
    if (!names.length) return axis;
    const values = (_, splits) => splits.map((v) => names[v] ?? "");
    return { ...axis, splits: () => names.map((_, i) => i), values, size: 46 };
  }

  /** Stretches of x with a grey ground. */
  shades(u) {
    const { left, top, width, height } = u.bbox;
    const inside = (x) => Math.min(Math.max(u.valToPos(x, "x", true), left), left + width);
    u.ctx.fillStyle = css("--shade");
    for (const [low, high] of this.panel.shade) {
      u.ctx.fillRect(inside(low), top, inside(high) - inside(low), height);
    }
  }

  /** Error bars, dotted lines and stars. */
  marks(u) {
    const { ctx, bbox } = u;
    const at = (x, y) => [u.valToPos(x, "x", true), u.valToPos(y, "y", true)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    this.shown.forEach((s, k) => {
      ctx.strokeStyle = ctx.fillStyle = css(`--c${s.colour}`);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.beginPath();
      if ((s.kind === "points" || s.kind === "dots") && s.sd) {
        const [x, high, low] = [u.data[0], u.data[3 * k + 2], u.data[3 * k + 3]];
        x.forEach((v, i) => {
          if (high[i] == null) return;
          ctx.moveTo(...at(v, high[i]));
          ctx.lineTo(...at(v, low[i]));
        });
      }
      ctx.stroke();
      if (s.at !== null) {
        const [x] = at(s.at, 1);
        ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      if (!s.star) return;
      ctx.font = `${22 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText("★", ...at(...s.star));
    });
    ctx.restore();
  }

  /** The values under the pointer: of each series, those at its nearest x. */
  read(u) {
    if (u.cursor.left < 0) return void (this.readout.textContent = "");
    const x = u.posToVal(u.cursor.left, "x");
    const values = this.shown.map(({ name, x: xs, y, sd }) => {
      const near = xs.reduce(
        (best, v, i) => (Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best),
        0,
      );
      const spread = sd?.[near] ? ` ± ${words(sd[near])}` : "";
      return y[near] == null ? "" : `${name} ${words(y[near])}${spread}`.trim();
    });
    this.readout.textContent = [words(x), ...values.filter(Boolean)].join("  ·  ");
  }

  /** What is in view, for whoever asks (the tests do). */
  note(u) {
    const { x, y } = u.scales;
    this.root.dataset.view = JSON.stringify({ x: [x.min, x.max], y: [y.min, y.max] });
    this.root.dataset.shown = this.shown.length;
  }
}

document.documentElement.classList.add("charts");
for (const root of document.querySelectorAll("figure.curve")) {
  const [i, j] = root.dataset.panel.split(",").map(Number);
  new PanelChart(root, DATA[i][j]);
}
// The picture is in the page: its download needs no file beside it.
for (const link of document.querySelectorAll("a[data-file]")) {
  link.href = document.querySelector(`${link.hash} .static img`).src;
  link.download = link.dataset.file;
}
