/**
 * Metrics. Every thread counts into its own row of one shared table, without a lock; the thread that answers a scrape
 * sums the rows. Text form: Prometheus exposition format 0.0.4.
 */

export interface MeterRow {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Every combination of label values gets a cell of its own: keep the lists short and closed. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
  /** Upper bounds of a histogram's buckets, ascending, without +Inf. */
  readonly buckets?: readonly number[]
  /**
   * The name that other gateways of the network use for the same metric, where it breaks the naming rules of
   * Prometheus; `factor`: in how many of their units ours is.
   */
  readonly network?: { readonly name: string; readonly factor?: number }
}

/** One cell of a thread's row. Never blocks. */
export interface Meter {
  /** Counters: adds. Gauges: adds, may be negative. Histograms: observes. */
  add(amount: number): void
  /** Gauges: replaces this thread's share. */
  set(amount: number): void
}

/** One number of the table, summed over all threads. */
export interface Series {
  /** With its labels, as the text format writes it. */
  readonly name: string
  readonly kind: 'counter' | 'gauge'
  read(): number
}

interface Placed {
  readonly row: MeterRow
  /** Label sets in order; each takes `width` cells. */
  readonly series: readonly string[]
  readonly width: number
  readonly start: number
}

function labelsOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join(',')
}

function seriesOf(row: MeterRow): string[] {
  let sets = ['']
  for (const [label, values] of Object.entries(row.labels ?? {})) {
    sets = sets.flatMap((set) => values.map((value) => `${set === '' ? '' : `${set},`}${label}="${value}"`))
  }
  return sets
}

function place(rows: readonly MeterRow[]): { placed: Map<string, Placed>; cells: number } {
  const placed = new Map<string, Placed>()
  let start = 0
  for (const row of rows) {
    if (placed.has(row.name)) throw new Error(`meter ${row.name} is declared twice`)
    const series = seriesOf(row)
    const width = row.kind === 'histogram' ? (row.buckets?.length ?? 0) + 2 : 1
    placed.set(row.name, { row, series, width, start })
    start += series.length * width
  }
  return { placed, cells: start }
}

/** Bytes of shared memory that `threads` rows of this table need. */
export function meterBytes(rows: readonly MeterRow[], threads: number): number {
  return place(rows).cells * 8 * threads
}

/** The table as one thread sees it: it writes row `thread` and can read the sum of all. */
export class Meters {
  readonly #placed: Map<string, Placed>
  readonly #cells: number
  readonly #mine: Float64Array
  readonly #all: Float64Array

  /** `memory` has `meterBytes(rows, threads)` bytes; every thread passes the same rows in the same order. */
  constructor(rows: readonly MeterRow[], memory: SharedArrayBuffer, thread: number) {
    const { placed, cells } = place(rows)
    this.#placed = placed
    this.#cells = cells
    this.#all = new Float64Array(memory)
    this.#mine = this.#all.subarray(thread * cells, (thread + 1) * cells)
    if (this.#mine.length !== cells) throw new RangeError(`no row ${thread} in the meter table`)
  }

  /** The cell of `name` with these labels. Throws on an undeclared name or label: a bug. Resolve once, keep the handle. */
  of(name: string, labels: Readonly<Record<string, string>> = {}): Meter {
    const found = this.#placed.get(name)
    if (found === undefined) throw new Error(`meter ${name} is not declared`)
    const set = Object.keys(found.row.labels ?? {})
      .map((label) => `${label}="${labels[label] ?? ''}"`)
      .join(',')
    const index = found.series.indexOf(set)
    if (index < 0) throw new Error(`meter ${name} has no series {${set}}`)
    const cell = found.start + index * found.width
    const mine = this.#mine
    const bounds = found.row.buckets
    if (bounds === undefined) {
      return {
        add: (amount) => {
          mine[cell]! += amount
        },
        set: (amount) => {
          mine[cell] = amount
        },
      }
    }
    const sum = cell + bounds.length + 1
    return {
      add: (amount) => {
        let bucket = 0
        while (bucket < bounds.length && amount > bounds[bucket]!) bucket += 1
        mine[cell + bucket]! += 1
        mine[sum]! += amount
      },
      set: () => {
        throw new Error(`histogram ${name} cannot be set`)
      },
    }
  }

  /** Where a series of this thread stands, for code that is not JavaScript: its first cell, and the bounds of a histogram. */
  placeOf(
    name: string,
    labels: Readonly<Record<string, string>>,
  ): { readonly cells: Float64Array; readonly at: number; readonly bounds: readonly number[] } {
    const found = this.#placed.get(name)
    const index = found?.series.indexOf(labelsOf(labels)) ?? -1
    if (found === undefined || index < 0) throw new Error(`no meter ${name}{${labelsOf(labels)}}`)
    return {
      cells: this.#mine,
      at: found.start + index * found.width,
      bounds: found.row.buckets ?? [],
    }
  }

  /** Every series of a row: of a histogram, one for each of its buckets, which count what lies in them alone. */
  series(name: string): Series[] {
    const found = this.#placed.get(name)
    if (found === undefined) throw new Error(`meter ${name} is not declared`)
    const { row, series, width, start } = found
    const kind = row.kind === 'gauge' ? 'gauge' : 'counter'
    return series.flatMap((set, index) => {
      const cell = start + index * width
      if (row.buckets === undefined)
        return [{ name: `${name}${set === '' ? '' : `{${set}}`}`, kind, read: () => this.#sum(cell) }]
      return [...row.buckets, '+Inf'].map((bound, bucket): Series => {
        const labels = [...(set === '' ? [] : [set]), `le="${bound}"`].join(',')
        return { name: `${name}_bucket{${labels}}`, kind, read: () => this.#sum(cell + bucket) }
      })
    })
  }

  /** The sum of a counter's or gauge's series over all threads. */
  total(name: string): number {
    const found = this.#placed.get(name)
    if (found === undefined || found.width !== 1) throw new Error(`no counter or gauge ${name}`)
    return found.series.reduce((sum, _, index) => sum + this.#sum(found.start + index), 0)
  }

  /** One series of a counter or gauge, summed over all threads. Throws on an undeclared name or label: a bug. */
  value(name: string, labels: Readonly<Record<string, string>>): number {
    const found = this.#placed.get(name)
    const set = labelsOf(labels)
    const index = found?.series.indexOf(set) ?? -1
    if (found === undefined || found.width !== 1 || index < 0) throw new Error(`no meter ${name}{${set}}`)
    return this.#sum(found.start + index)
  }

  #sum(cell: number): number {
    let sum = 0
    for (let at = cell; at < this.#all.length; at += this.#cells) sum += this.#all[at]!
    return sum
  }

  /**
   * All rows, summed over threads, in the Prometheus text format; `label` (`name="value"`) stands on every series. `isNetwork`:
   * rows that have a name of the network stand under it, too.
   */
  text(label = '', isNetwork = false): string {
    const lines: string[] = []
    for (const [name, placed] of this.#placed) {
      const { network } = placed.row
      lines.push(...this.#row(placed, name, label))
      if (isNetwork && network !== undefined)
        lines.push(...this.#row(placed, network.name, label, network.factor))
    }
    return `${lines.join('\n')}\n`
  }

  #row({ row, series, width, start }: Placed, name: string, label: string, factor = 1): string[] {
    const lines = [`# HELP ${name} ${row.help}`, `# TYPE ${name} ${row.kind}`]
    series.forEach((own, index) => {
      const set = [own, label].filter((part) => part !== '').join(',')
      const cell = start + index * width
      if (row.kind !== 'histogram')
        lines.push(`${name}${set === '' ? '' : `{${set}}`} ${this.#sum(cell) * factor}`)
      else lines.push(...this.#histogram(name, row.buckets ?? [], set, cell, factor))
    })
    return lines
  }

  #histogram(name: string, bounds: readonly number[], set: string, cell: number, factor: number): string[] {
    const lead = set === '' ? '' : `${set},`
    const lines: string[] = []
    let count = 0
    for (let bucket = 0; bucket <= bounds.length; bucket += 1) {
      count += this.#sum(cell + bucket)
      const bound = bounds[bucket]
      const le = bound === undefined ? '+Inf' : bound * factor
      lines.push(`${name}_bucket{${lead}le="${le}"} ${count}`)
    }
    const tail = set === '' ? '' : `{${set}}`
    return [
      ...lines,
      `${name}_sum${tail} ${this.#sum(cell + bounds.length + 1) * factor}`,
      `${name}_count${tail} ${count}`,
    ]
  }
}
