"use strict";
// Zoomable curves without a library. Every <figure class="curve" data-panel="i,j"> shows panel j of figure i of the page's data.
const DATA = JSON.parse(document.getElementById("data").textContent);
const DASH = [[], [7, 4], [2, 3], [8, 3, 2, 3]];

function ticks(low, high, log) {
  if (log) {
    const out = [];
    for (let e = Math.floor(low); e <= Math.ceil(high); e++) for (const m of high - low < 1.5 ? [1, 2, 5] : [1]) out.push(e + Math.log10(m));
    return out.filter((t) => t >= low && t <= high);
  }
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const out = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9 * step; t += step) out.push(Math.abs(t) < 1e-9 * step ? 0 : t);
  return out;
}

function words(value) {
  const a = Math.abs(value);
  if (a >= 1e9) return +(value / 1e9).toPrecision(4) + "G";
  if (a >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
  if (a >= 1e4) return +(value / 1e3).toPrecision(4) + "k";
  return String(+value.toPrecision(4));
}

class Curves {
  constructor(root, panel) {
    this.panel = panel;
    this.canvas = root.querySelector("canvas");
    this.readout = root.querySelector(".readout");
    this.log = { x: panel.logx, y: panel.logy };
    this.hidden = new Set();
    this.legend(root.querySelector(".legend"));
    for (const button of root.querySelectorAll("[data-do]")) button.addEventListener("click", () => this.act(button));
    this.canvas.addEventListener("wheel", (e) => { if (e.ctrlKey || e.shiftKey || this.active) { e.preventDefault(); this.zoom(e.deltaY < 0 ? 0.8 : 1.25, this.at(e)); } }, { passive: false });
    this.canvas.addEventListener("pointerdown", (e) => { this.from = this.at(e); this.canvas.setPointerCapture(e.pointerId); });
    this.canvas.addEventListener("pointermove", (e) => this.move(e));
    this.canvas.addEventListener("pointerup", (e) => this.drop(e));
    this.canvas.addEventListener("pointercancel", () => { this.from = this.to = null; this.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.active = false; this.hover = null; this.readout.textContent = ""; this.draw(); });
    this.canvas.addEventListener("click", () => { this.active = true; });
    this.canvas.addEventListener("dblclick", () => this.reset());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.reset();
  }

  legend(list) {
    this.panel.series.forEach((s, i) => {
      if (!s.name) return;
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.innerHTML = `<svg width="26" height="8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" stroke="var(--c${s.colour})" stroke-width="2.5" stroke-dasharray="${DASH[s.line].join(" ")}"/></svg>`;
      button.append(" " + s.name);
      button.addEventListener("click", () => {
        this.hidden.has(i) ? this.hidden.delete(i) : this.hidden.add(i);
        button.setAttribute("aria-pressed", String(!this.hidden.has(i)));
        this.draw();
      });
      list.append(button);
    });
  }

  act(button) {
    const what = button.dataset.do;
    if (what === "reset") return this.reset();
    if (what === "in" || what === "out") return this.zoom(what === "in" ? 0.6 : 1 / 0.6);
    this.log[what] = !this.log[what];
    button.setAttribute("aria-pressed", String(this.log[what]));
    this.reset();
  }

  scale(axis, value) { return this.log[axis] ? Math.log10(value) : value; }
  value(axis, place) { return this.log[axis] ? 10 ** place : place; }

  reset() {
    const span = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
    const take = (axis, v) => {
      const p = this.scale(axis, v);
      if (Number.isFinite(p)) span[axis] = [Math.min(span[axis][0], p), Math.max(span[axis][1], p)];
    };
    for (const s of this.panel.series) s.x.forEach((x, i) => {
      take("x", x);
      take("y", s.y[i]);
      if (s.sd && s.y[i] !== null) for (const end of [s.y[i] - s.sd[i], s.y[i] + s.sd[i]]) take("y", end);
    });
    if (this.panel.ylim && !this.log.y) span.y = this.panel.ylim.slice();
    for (const axis of ["x", "y"]) {
      if (!(span[axis][1] > span[axis][0])) span[axis] = [(span[axis][0] || 0) - 1, (span[axis][0] || 0) + 1];
      const pad = (axis === "x" ? 0.02 : 0.05) * (span[axis][1] - span[axis][0]);
      span[axis] = [span[axis][0] - pad, span[axis][1] + pad];
    }
    this.view = span;
    this.draw();
  }

  zoom(factor, centre) {
    for (const axis of ["x", "y"]) {
      const [a, b] = this.view[axis], c = centre ? this.place(axis, centre[axis]) : (a + b) / 2;
      this.view[axis] = [c + (a - c) * factor, c + (b - c) * factor];
    }
    this.draw();
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  frame() { return { l: 58, t: 10, r: this.canvas.clientWidth - 10, b: this.canvas.clientHeight - 40 }; }

  place(axis, pixel) {
    const f = this.frame(), [a, b] = this.view[axis];
    return axis === "x" ? a + ((pixel - f.l) / (f.r - f.l)) * (b - a) : b - ((pixel - f.t) / (f.b - f.t)) * (b - a);
  }

  pixel(axis, value) {
    const f = this.frame(), [a, b] = this.view[axis], p = (this.scale(axis, value) - a) / (b - a);
    return axis === "x" ? f.l + p * (f.r - f.l) : f.b - p * (f.b - f.t);
  }

  move(event) {
    const here = this.at(event);
    if (this.from) this.to = here;
    this.hover = here;
    this.draw();
    this.read(this.value("x", this.place("x", here.x)));
  }

  drop(event) {
    const to = this.at(event), from = this.from;
    this.from = this.to = null;
    if (from && Math.abs(to.x - from.x) > 8 && Math.abs(to.y - from.y) > 8) {
      const x = [this.place("x", from.x), this.place("x", to.x)].sort((a, b) => a - b);
      const y = [this.place("y", from.y), this.place("y", to.y)].sort((a, b) => a - b);
      this.view = { x, y };
    }
    this.draw();
  }

  read(x) {
    const parts = [words(x)];
    this.panel.series.forEach((s, k) => {
      if (this.hidden.has(k)) return;
      let i = s.x.findIndex((v) => v >= x);
      if (i < 0) return;
      if (i > 0 && x - s.x[i - 1] < s.x[i] - x) i--;
      if (s.y[i] !== null) parts.push(`${s.name ? s.name + " " : ""}${words(s.y[i])}${s.sd && s.sd[i] ? " ± " + words(s.sd[i]) : ""}`);
    });
    this.readout.textContent = parts.join("  ·  ");
  }

  draw() {
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    const ratio = devicePixelRatio || 1, w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    if (!w) return;
    this.canvas.width = w * ratio;
    this.canvas.height = h * ratio;
    const g = this.canvas.getContext("2d"), f = this.frame();
    g.scale(ratio, ratio);
    g.font = "12px system-ui, sans-serif";
    g.fillStyle = colour("--text");
    g.strokeStyle = colour("--grid");
    g.textAlign = "center";
    for (const t of ticks(...this.view.x, this.log.x)) {
      const x = this.pixel("x", this.value("x", t));
      g.beginPath(); g.moveTo(x, f.t); g.lineTo(x, f.b); g.stroke();
      g.fillText(words(this.value("x", t)), x, f.b + 15);
    }
    g.fillText(this.panel.x, (f.l + f.r) / 2, f.b + 33, f.r - f.l);
    g.textAlign = "right";
    for (const t of ticks(...this.view.y, this.log.y)) {
      const y = this.pixel("y", this.value("y", t));
      g.beginPath(); g.moveTo(f.l, y); g.lineTo(f.r, y); g.stroke();
      g.fillText(words(this.value("y", t)), f.l - 6, y + 4);
    }
    g.save();
    g.translate(12, (f.t + f.b) / 2); g.rotate(-Math.PI / 2); g.textAlign = "center";
    g.fillText(this.panel.y, 0, 0, f.b - f.t);
    g.restore();
    g.save();
    g.beginPath(); g.rect(f.l, f.t, f.r - f.l, f.b - f.t); g.clip();
    g.fillStyle = colour("--shade");
    for (const [a, b] of this.panel.shade) g.fillRect(this.pixel("x", a), f.t, this.pixel("x", b) - this.pixel("x", a), f.b - f.t);
    this.panel.series.forEach((s, k) => { if (!this.hidden.has(k)) this.series(g, s, colour("--c" + s.colour), f); });
    if (this.from && this.to) {
      g.strokeStyle = colour("--text"); g.setLineDash([4, 3]);
      g.strokeRect(this.from.x, this.from.y, this.to.x - this.from.x, this.to.y - this.from.y);
    } else if (this.hover) {
      g.strokeStyle = colour("--text"); g.globalAlpha = 0.4;
      g.beginPath(); g.moveTo(this.hover.x, f.t); g.lineTo(this.hover.x, f.b); g.stroke();
    }
    g.restore();
    this.canvas.dataset.view = JSON.stringify(this.view);
    this.canvas.dataset.shown = String(this.panel.series.length - this.hidden.size);
  }

  series(g, s, colour, f) {
    const n = s.x.length, X = s.x.map((v) => this.pixel("x", v)), clip = (y) => Math.max(f.t - 1e4, Math.min(f.b + 1e4, y));
    const Y = (i, k) => clip(this.pixel("y", s.y[i] + k * (s.sd ? s.sd[i] || 0 : 0)));
    const low = (i) => { const y = Y(i, -1); return Number.isFinite(y) ? y : f.b; };
    const good = [...Array(n).keys()].filter((i) => s.y[i] !== null && Number.isFinite(X[i]) && Number.isFinite(Y(i, 0)));
    g.strokeStyle = g.fillStyle = colour;
    g.lineWidth = 1.8;
    if (s.sd && s.kind === "line") {
      g.globalAlpha = 0.18;
      g.beginPath();
      good.forEach((i, j) => (j ? g.lineTo(X[i], Y(i, 1)) : g.moveTo(X[i], Y(i, 1))));
      good.slice().reverse().forEach((i) => g.lineTo(X[i], low(i)));
      g.fill();
      g.globalAlpha = 1;
    }
    g.setLineDash(DASH[s.line]);
    g.beginPath();
    good.forEach((i, j) => {
      if (!j) return g.moveTo(X[i], Y(i, 0));
      if (s.kind === "steps") g.lineTo(X[i], Y(good[j - 1], 0));
      g.lineTo(X[i], Y(i, 0));
    });
    g.stroke();
    g.setLineDash([]);
    if (s.kind === "points") for (const i of good) {
      g.beginPath(); g.arc(X[i], Y(i, 0), 3, 0, 7); g.fill();
      if (s.sd) { g.beginPath(); g.moveTo(X[i], Y(i, 1)); g.lineTo(X[i], low(i)); g.stroke(); }
    }
    if (s.at !== null) { g.setLineDash([2, 3]); g.beginPath(); g.moveTo(this.pixel("x", s.at), f.t); g.lineTo(this.pixel("x", s.at), f.b); g.stroke(); g.setLineDash([]); }
    if (s.star) { g.font = "22px system-ui, sans-serif"; g.textAlign = "center"; g.fillText("★", this.pixel("x", s.star[0]), this.pixel("y", s.star[1]) + 8); }
  }
}

for (const root of document.querySelectorAll("figure.curve")) {
  const [i, j] = root.dataset.panel.split(",").map(Number);
  new Curves(root, DATA[i][j]);
}
