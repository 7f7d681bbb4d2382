/** Lines of charts out of a report of the history: what happened in each step of a stretch of time. */
import { quantile } from './load.js'

/** The middle of each step, seconds since 1970. */
export function timesOf({ fromMs, stepMs, covered }) {
  return covered.map((_, at) => (fromMs + (at + 0.5) * stepMs) / 1000)
}

const isOf = (name, meter, part) => (name === meter || name.startsWith(`${meter}{`)) && name.includes(part)

/** A counter's growth each second, over all of its series that hold `part`; null where the program did not run. */
export function rates({ counters, covered }, meter, part = '') {
  const found = Object.entries(counters).flatMap(([name, values]) =>
    isOf(name, meter, part) ? [values] : [],
  )
  return covered.map((seconds, at) =>
    seconds === 0 ? null : found.reduce((sum, values) => sum + values[at], 0) / seconds,
  )
}

/** A gauge, over all of its series. */
export function levels({ gauges, covered }, meter) {
  const found = Object.entries(gauges).flatMap(([name, values]) => (isOf(name, meter, '') ? [values] : []))
  return covered.map((_, at) => {
    const values = found.flatMap((each) => each[at] ?? [])
    return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0)
  })
}

/** Values of a label that any series of a meter has in this stretch. */
export function labelsOf({ counters }, meter, label) {
  const wanted = new RegExp(`^${meter}\\{(?:.*,)?${label}="([^"]*)"`)
  return [...new Set(Object.keys(counters).flatMap((name) => wanted.exec(name)?.[1] ?? []))].sort()
}

/** A quantile of a histogram in each step; null where nothing was counted. */
export function quantiles({ counters, covered }, meter, share, part = '') {
  const byBound = new Map()
  for (const [name, values] of Object.entries(counters)) {
    if (!isOf(name, `${meter}_bucket`, part)) continue
    const bound = Number(/le="([^"]*)"/.exec(name)?.[1].replace('+Inf', 'Infinity'))
    const sums = byBound.get(bound) ?? covered.map(() => 0)
    byBound.set(
      bound,
      sums.map((sum, at) => sum + values[at]),
    )
  }
  const bounds = [...byBound.keys()].sort((one, other) => one - other)
  return covered.map((_, at) => {
    let count = 0
    const buckets = bounds.map((le) => {
      count += byBound.get(le)[at]
      return { le, count }
    })
    return quantile(buckets, share) ?? null
  })
}

/** Parts of a whole in percent; null where there is nothing. */
export function shares(parts, others) {
  return parts.map((part, at) => {
    const whole = part + others[at]
    return part === null || whole === 0 ? null : (100 * part) / whole
  })
}
