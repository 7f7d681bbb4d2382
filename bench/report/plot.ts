/** Text as it may stand in HTML. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

/** A place between two bounds, in percent: by powers where the scale is a logarithm. */
export function share(value: number, low: number, high: number, isLogarithm: boolean): number {
  const at = isLogarithm ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)
  return Math.max(0, Math.min(100, at * 100))
}

const percent = (value: number): string => `${value.toFixed(2)}%`

/** A drawing as wide as its place, of so many pixels in height. Lengths across are in percent, so that text keeps its size. */
export function drawing(height: number, label: string, parts: readonly string[]): string {
  return `<svg width="100%" height="${height}" role="img" aria-label="${escaped(label)}">${parts.join('')}</svg>`
}

export interface Bar {
  readonly label: string
  readonly text: string
  readonly value: number
  /** ours, rival or part. */
  readonly role: string
}

const rowHeight = 36

/** Bars below each other from zero, each with its words above it. */
export function bars(all: readonly Bar[], label: string): string {
  const high = Math.max(...all.map(({ value }) => value), 1e-9)
  const parts = all.flatMap(({ label: name, text, value, role }, at) => {
    const top = at * rowHeight
    return [
      `<text x="0" y="${top + 14}">${escaped(name)}</text>`,
      `<text x="100%" y="${top + 14}" text-anchor="end" class="number">${escaped(text)}</text>`,
      `<rect x="0" y="${top + 19}" width="${percent(share(value, 0, high, false))}" height="9" rx="2" class="${role}"/>`,
    ]
  })
  return drawing(all.length * rowHeight, label, parts)
}

export interface Spread {
  readonly label: string
  readonly role: string
  /** From low to high, all above 0. */
  readonly values: readonly number[]
  readonly text: string
}

/** Values of each row as dots on one logarithmic scale. */
export function spreads(all: readonly Spread[], label: string): string {
  const values = all.flatMap((each) => each.values).filter((value) => value > 0)
  const [low, high] = [Math.min(...values) / 1.2, Math.max(...values) * 1.2]
  const place = (value: number): string => percent(share(value, low, high, true))
  const parts = all.flatMap(({ label: name, role, values: own, text }, at) => {
    const [top, middle] = [at * rowHeight, at * rowHeight + 24]
    const [first = low, last = low] = [own[0], own.at(-1)]
    return [
      `<text x="0" y="${top + 14}">${escaped(name)}</text>`,
      `<text x="100%" y="${top + 14}" text-anchor="end" class="number">${escaped(text)}</text>`,
      `<line x1="${place(first)}" x2="${place(last)}" y1="${middle}" y2="${middle}" class="${role} range"/>`,
      ...own.map((value) => `<circle cx="${place(value)}" cy="${middle}" r="4" class="${role}"/>`),
    ]
  })
  return drawing(all.length * rowHeight, label, parts)
}

export interface Ratio {
  readonly label: string
  readonly ratio: number
  readonly bar?: number | undefined
  readonly verdict: string
}

/** Ratios on one logarithmic scale around 1, with what is wanted as a mark. */
export function ratios(all: readonly Ratio[], label: string): string {
  const values = all.flatMap(({ ratio, bar = 1 }) => [ratio, bar])
  const reach = Math.max(2, ...values.map((value) => Math.max(value, 1 / value))) * 1.1
  const place = (value: number): number => share(value, 1 / reach, reach, true)
  const parts = all.flatMap(({ label: name, ratio, bar, verdict }, at) => {
    const top = at * rowHeight
    const [from, to] = [Math.min(50, place(ratio)), Math.max(50, place(ratio))]
    const wanted = bar === undefined ? '' : `, wanted ${bar}x`
    const mark = bar === undefined ? '' : percent(place(bar))
    const kind = `${verdict.replaceAll(' ', '-')} ${ratio >= 1 ? 'more' : 'less'}`
    return [
      `<text x="0" y="${top + 14}">${escaped(name)}</text>`,
      `<text x="100%" y="${top + 14}" text-anchor="end" class="number">${ratio.toFixed(2)}x${wanted}</text>`,
      `<rect x="${percent(from)}" y="${top + 19}" width="${percent(to - from)}" height="9" class="${kind}"/>`,
      bar === undefined
        ? ''
        : `<line x1="${mark}" x2="${mark}" y1="${top + 17}" y2="${top + 30}" class="mark"/>`,
    ]
  })
  const axis = `<line x1="50%" x2="50%" y1="0" y2="${all.length * rowHeight}" class="axis"/>`
  return drawing(all.length * rowHeight, label, [axis, ...parts])
}

/** Ratios of one case from run to run, oldest first. */
export function course(values: readonly number[], label: string): string {
  const reach = Math.max(1.5, ...values.map((value) => Math.max(value, 1 / value)))
  const y = (value: number): number => 100 - share(value, 1 / reach, reach, true)
  const x = (at: number): number => (values.length === 1 ? 50 : (at / (values.length - 1)) * 100)
  const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
  const line = `<polyline points="${points}" class="ours" vector-effect="non-scaling-stroke"/>`
  const middle = '<line x1="0" x2="100" y1="50" y2="50" class="axis" vector-effect="non-scaling-stroke"/>'
  const box = 'viewBox="0 0 100 100" preserveAspectRatio="none"'
  return `<svg ${box} width="100%" height="48" role="img" aria-label="${escaped(label)}">${middle}${line}</svg>`
}
