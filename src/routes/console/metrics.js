/** The numbers of the gateway, as its metrics spell them (Prometheus text, version 0.0.4). */

/** @returns {Map<string, {labels: string, value: number}[]>} series by name */
export function parseMetrics(text) {
  const series = new Map()
  for (const line of text.split('\n')) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (found === null) continue
    const [, name, labels = '', value] = found
    const list = series.get(name) ?? []
    list.push({ labels, value: Number(value) })
    series.set(name, list)
  }
  return series
}

/** The sum of a series over all labels that hold `part`; 0 where there is none. */
export function sum(series, name, part = '') {
  let total = 0
  for (const { labels, value } of series.get(name) ?? []) if (labels.includes(part)) total += value
  return total
}

/** A counter's growth each second between two readings; 0 after a restart of the gateway. */
export function rate(before, now, seconds, name, part = '') {
  if (before === undefined || seconds <= 0) return 0
  return Math.max(0, sum(now, name, part) - sum(before, name, part)) / seconds
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** Bytes for people. */
export function bytes(count) {
  let value = count
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** A number for people. */
export function number(value) {
  if (value >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en')
  return value.toFixed(value >= 10 ? 1 : 2)
}

/** A span of time for people. */
export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

/** Points of a line through `values` in a box of 100 by 30 with zero at the bottom; few values fill a part of its width. */
export function points(values) {
  const most = Math.max(values.length, 30)
  const top = Math.max(...values, 0) || 1
  return values
    .map((value, at) => `${((at + most - values.length) * 100) / (most - 1)},${29 - (value / top) * 27}`)
    .join(' ')
}
