/**
 * Numbers that the operator sees. Every thread counts into its own row of one shared table, without a lock; whoever answers
 * a scrape sums the rows. Text form: Prometheus exposition format 0.0.4.
 */

export interface MeterRow {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Every combination of label values gets a cell of its own: keep the lists short and closed. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
  /** Upper bounds of a histogram's buckets, ascending, without +Inf. */
  readonly buckets?: readonly number[]
}

/** One cell of a thread's row. Never blocks. */
export interface Meter {
  /** Counters: adds. Gauges: adds, may be negative. Histograms: observes. */
  add(amount: number): void
  /** Gauges: replaces this thread's share. */
  set(amount: number): void
}

interface Placed {
  readonly row: MeterRow
  /** Label sets in order; each takes `width` cells. */
  readonly series: readonly string[]
  readonly width: number
  readonly start: number
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

  /** The sum of a counter's or gauge's series over all threads. */
  total(name: string): number {
    const found = this.#placed.get(name)
    if (found === undefined || found.width !== 1) throw new Error(`no counter or gauge ${name}`)
    return found.series.reduce((sum, _, index) => sum + this.#sum(found.start + index), 0)
  }

  #sum(cell: number): number {
    let sum = 0
    for (let at = cell; at < this.#all.length; at += this.#cells) sum += this.#all[at]!
    return sum
  }

  /** All rows, summed over threads, in the Prometheus text format. */
  text(): string {
    const lines: string[] = []
    for (const [name, { row, series, width, start }] of this.#placed) {
      lines.push(`# HELP ${name} ${row.help}`, `# TYPE ${name} ${row.kind}`)
      series.forEach((set, index) => {
        const cell = start + index * width
        if (row.kind !== 'histogram') lines.push(`${name}${set === '' ? '' : `{${set}}`} ${this.#sum(cell)}`)
        else lines.push(...this.#histogram(name, row.buckets ?? [], set, cell))
      })
    }
    return `${lines.join('\n')}\n`
  }

  #histogram(name: string, bounds: readonly number[], set: string, cell: number): string[] {
    const lead = set === '' ? '' : `${set},`
    const lines: string[] = []
    let count = 0
    for (let bucket = 0; bucket <= bounds.length; bucket += 1) {
      count += this.#sum(cell + bucket)
      lines.push(`${name}_bucket{${lead}le="${bounds[bucket] ?? '+Inf'}"} ${count}`)
    }
    const tail = set === '' ? '' : `{${set}}`
    return [
      ...lines,
      `${name}_sum${tail} ${this.#sum(cell + bounds.length + 1)}`,
      `${name}_count${tail} ${count}`,
    ]
  }
}
