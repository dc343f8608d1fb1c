// Continuous laws of mean 1 and coefficient of variation cv: cv -> (noise -> a number above 0).

/** Gamma of shape 1 / cv^2 (Marsaglia and Tsang; below 1 with a power of a uniform number). */
function gamma(cv) {
  const shape = 1 / cv ** 2;
  const d = (shape < 1 ? shape + 1 : shape) - 1 / 3;
  const draw = (noise) => {
    for (;;) {
      const x = noise.normal();
      const v = (1 + x / Math.sqrt(9 * d)) ** 3;
      const u = 1 - noise.uniform();
      if (v > 0 && Math.log(u) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  };
  if (shape >= 1) return (noise) => draw(noise) / shape;
  return (noise) => (draw(noise) * (1 - noise.uniform()) ** (1 / shape)) / shape;
}

function logNormal(cv) {
  const variance = Math.log1p(cv ** 2);
  return (noise) => Math.exp(Math.sqrt(variance) * noise.normal() - variance / 2);
}

/** log of the gamma function for x > 0: its recurrence up to 8, then Stirling's series. */
function logGamma(x) {
  if (x < 8) return logGamma(x + 1) - Math.log(x);
  const series = 1 / (12 * x) - 1 / (360 * x ** 3) + 1 / (1260 * x ** 5);
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
}

/** Weibull; its shape k solves Gamma(1 + 2/k) / Gamma(1 + 1/k)^2 = 1 + cv^2 (by bisection). */
function weibull(cv) {
  const excess = (k) => logGamma(1 + 2 / k) - 2 * logGamma(1 + 1 / k) - Math.log1p(cv ** 2);
  let [low, high] = [0.1, 100];
  for (let i = 0; i < 60; i++) {
    const k = Math.sqrt(low * high);
    if (excess(k) > 0) low = k;
    else high = k;
  }
  const scale = Math.exp(-logGamma(1 + 1 / low));
  return (noise) => scale * (-Math.log(1 - noise.uniform())) ** (1 / low);
}

export const LAWS = { gamma, lognormal: logNormal, weibull };
