// Comparisons to start from: what A and B are set to, and what to watch.

export const STORIES = [
  {
    title: "Classical rule and always-on learning",
    watch:
      "A alternates strictly and remembers its positive term. B picks its phases at random, learns at " +
      "every tick and remembers nothing. Its weights are noisier, but its slow weights catch up.",
    a: { rule: "two-term", selection: "alternating", eta: 0.01 },
    b: { rule: "aol" },
  },
];
