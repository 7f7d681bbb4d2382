import t from 'tap'

/** The console's own files: browsers load them as they are. */
const at = (name: string): string => new URL(`../../../src/routes/console/${name}.js`, import.meta.url).href
type Series = ReadonlyMap<string, readonly { readonly labels: string; readonly value: number }[]>
type Buckets = readonly { readonly le: number; readonly count: number }[]
const { parseMetrics } = (await import(at('metrics'))) as { parseMetrics(text: string): Series }
const { grown, quantile, slowness, threads } = (await import(at('load'))) as {
  grown(before: Series | undefined, now: Series, name: string, label?: string): ReadonlyMap<string, Buckets>
  quantile(buckets: Buckets, share: number): number | undefined
  threads(
    before: Series | undefined,
    now: Series,
    seconds: number,
  ): readonly { name: string; share?: number }[]
  slowness(before: Series, now: Series, seconds: number, found: readonly object[]): string[]
}
const reading = (data: readonly number[], raw: readonly number[]): Series =>
  parseMetrics(
    [
      ...data.map((count, at) => `d_bucket{route="data",le="${[0.1, 1, '+Inf'][at]}"} ${count}`),
      ...raw.map((count, at) => `d_bucket{route="raw",le="${[0.1, 1, '+Inf'][at]}"} ${count}`),
    ].join('\n'),
  )

t.test('latency is what a histogram grew by', async (t) => {
  const before = reading([10, 20, 20], [0, 0, 0])
  const now = reading([20, 30, 30], [0, 10, 10])
  const all = grown(before, now, 'd').get('') ?? []
  t.same(
    all.map(({ count }) => count),
    [10, 20, 20],
  )
  t.equal(quantile(all, 0.5), 0.1)
  t.equal(quantile(all, 0.75), 0.55)
  const raw = grown(before, now, 'd', 'route').get('raw') ?? []
  t.equal(quantile(raw, 0.5), 0.55)
  t.equal(quantile(grown(now, now, 'd').get('') ?? [], 0.5), undefined, 'nothing was answered')
  t.equal(
    quantile(
      [
        { le: 1, count: 0 },
        { le: Number.POSITIVE_INFINITY, count: 2 },
      ],
      0.5,
    ),
    1,
    'the last bound that is known',
  )
})

t.test('threads show what they took of a processor, and a busy or late one is named', async (t) => {
  const text = (seconds: number): Series =>
    parseMetrics(
      [
        'thread_heap_used_bytes{thread="source",release="x"} 1',
        'thread_heap_used_bytes{thread="edge-1",release="x"} 1',
        'thread_loop_delay_seconds{thread="edge-1",release="x"} 0.25',
        `thread_processor_seconds_total{thread="edge-1",release="x"} ${seconds}`,
        'thread_processor_seconds_total{thread="source",release="x"} 1',
        `contiguous_data_cache_miss_total ${seconds * 10}`,
      ].join('\n'),
    )
  const found = threads(text(10), text(11.9), 2)
  t.same(
    found.map(({ name, share }) => [name, share?.toFixed(2)]),
    [
      ['edge-1', '0.95'],
      ['source', '0.00'],
    ],
  )
  const findings = slowness(text(10), text(11.9), 2, found).join('\n')
  t.match(findings, /edge-1: within half a minute its loop was late by 250 ms/)
  t.match(findings, /edge-1 takes 95 %/)
  t.match(findings, /Most content is not here yet/)
  t.same(slowness(text(10), text(10), 2, []), [])
})

interface Report {
  readonly covered: readonly number[]
  readonly counters: Readonly<Record<string, readonly number[]>>
  readonly gauges: Readonly<Record<string, readonly (number | null)[]>>
}
type Values = readonly (number | null)[]
const lines = (await import(at('report'))) as {
  rates(report: Report, meter: string, part?: string): Values
  levels(report: Report, meter: string): Values
  labelsOf(report: Report, meter: string, label: string): readonly string[]
  quantiles(report: Report, meter: string, share: number, part?: string): Values
  shares(parts: Values, others: Values): Values
}
const report: Report = {
  covered: [10, 0, 5],
  counters: {
    'n_total{code="A"}': [20, 0, 10],
    'n_total{code="B"}': [10, 0, 0],
    n_total_more: [99, 99, 99],
    'd_bucket{route="data",le="0.1"}': [10, 0, 0],
    'd_bucket{route="data",le="1"}': [10, 0, 4],
    'd_bucket{route="raw",le="+Inf"}': [0, 0, 6],
  },
  gauges: { free: [5, null, 7] },
}

t.test('a history has gaps where the program did not run', async (t) => {
  t.strictSame(lines.rates(report, 'n_total'), [3, null, 2])
  t.strictSame(lines.rates(report, 'n_total', 'code="B"'), [1, null, 0])
  t.strictSame(lines.levels(report, 'free'), [5, null, 7])
  t.strictSame(lines.labelsOf(report, 'n_total', 'code'), ['A', 'B'])
  t.strictSame(lines.quantiles(report, 'd', 0.5), [0.1, null, 1])
  t.strictSame(lines.quantiles(report, 'd', 0.5, 'route="data"'), [0.1, null, 0.55])
  t.strictSame(lines.shares([3, null, 0], [1, null, 0]), [75, null, null])
})
