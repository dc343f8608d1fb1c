// The exact distribution of the visible units: p(v) = exp(-F(v)) / Z for all 2^visible states.
//
// -F(v) = a v + sum_j log(1 + exp(c_j + (v W)_j)). The states are split into a low and a high
// half, so that exp(c + v W) is a product of two small tables and a state costs multiplications,
// not exponentials. Factors are never below 1; where a product overflows, the state is done in
// logarithms.

const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** The sum of weights[i * columns + j] over the units that are on, for all states of the units. */
function summed(weights, columns, units) {
  const table = new Float64Array(2 ** units.length * columns);
  units.forEach((i, bit) => {
    const size = 2 ** bit * columns;
    for (let k = 0; k < size; k++) {
      table[size + k] = table[k] + weights[i * columns + (k % columns)];
    }
  });
  return table;
}

/** -F(v) of every state; unit i is bit i of the state's number. */
export function minusFreeEnergies({ visible, hidden, W, a, c }) {
  const half = visible >> 1;
  const units = [...Array(visible).keys()];
  const [below, above] = [units.slice(0, half), units.slice(half)];
  const [low, high] = [summed(W, hidden, below), summed(W, hidden, above)];
  const [biasLow, biasHigh] = [summed(a, 1, below), summed(a, 1, above)];
  high.forEach((_, k) => (high[k] += c[k % hidden]));
  const [expLow, expHigh] = [low.map(Math.exp), high.map(Math.exp)];
  const out = new Float64Array(2 ** visible);
  for (let s = 0; s < out.length; s++) {
    const l = s & (2 ** half - 1);
    const r = s >> half;
    let even = 1;
    let odd = 1;
    let i = l * hidden;
    let k = r * hidden;
    for (let j = 1; j < hidden; j += 2, i += 2, k += 2) {
      even *= 1 + expLow[i] * expHigh[k];
      odd *= 1 + expLow[i + 1] * expHigh[k + 1];
    }
    if (hidden % 2) even *= 1 + expLow[i] * expHigh[k];
    let sum = Math.log(even) + Math.log(odd);
    if (!(sum < Infinity)) {
      sum = 0;
      for (let j = 0; j < hidden; j++) sum += softplus(low[l * hidden + j] + high[r * hidden + j]);
    }
    out[s] = sum + biasLow[l] + biasHigh[r];
  }
  return out;
}

/** The number of a state, given its units. */
export function numbered(v) {
  return v.reduce((sum, on, i) => sum + (on ? 2 ** i : 0), 0);
}

/**
 * What a machine has learnt about rows of data.
 * nll: exact negative log-likelihood in nats, summed over the rows; share: the probability that a
 * sample is one of them; samples: `count` exact, independent samples, as sorted numbers of states.
 */
export function measure(params, rows, noise, count) {
  const logits = minusFreeEnergies(params);
  const top = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const p = logits.map((x) => Math.exp(x - top));
  const z = p.reduce((a, b) => a + b, 0);
  const numbers = rows.map(numbered);
  const nll = numbers.reduce((sum, s) => sum + top + Math.log(z) - logits[s], 0);
  const share = [...new Set(numbers)].reduce((sum, s) => sum + p[s] / z, 0);
  return { nll, share, samples: draw(p, z, noise, count) };
}

/** Exact samples: uniform places on the cumulative sum, found in one pass. */
function draw(p, z, noise, count) {
  const places = Float64Array.from({ length: count }, () => z * noise.uniform()).sort();
  const samples = [];
  for (let s = 0, sum = p[0]; samples.length < count;) {
    if (places[samples.length] < sum || s === p.length - 1) samples.push(s);
    else sum += p[++s];
  }
  return samples;
}
