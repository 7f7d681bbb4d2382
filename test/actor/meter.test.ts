import t from 'tap'
import { type MeterRow, Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'

const rows: MeterRow[] = [
  { name: 'a_total', kind: 'counter', help: 'A.', labels: { kind: ['x', 'y'], side: ['l', 'r'] } },
  { name: 'b', kind: 'gauge', help: 'B.' },
  { name: 'c_seconds', kind: 'histogram', help: 'C.', buckets: [1, 2] },
]

t.test('rows of all threads are summed', async (t) => {
  const memory = new SharedArrayBuffer(meterBytes(rows, 3))
  const threads = [0, 1, 2].map((thread) => new Meters(rows, memory, thread))
  for (const meters of threads) {
    meters.of('a_total', { kind: 'y', side: 'l' }).add(2)
    meters.of('b').set(5)
    meters.of('c_seconds').add(1.5)
  }
  threads[0]?.of('c_seconds').add(9)
  const text = threads[1]?.text() ?? ''
  t.match(text, 'a_total{kind="y",side="l"} 6\n')
  t.match(text, 'a_total{kind="x",side="r"} 0\n')
  t.match(text, 'b 15\n')
  t.match(text, 'c_seconds_bucket{le="1"} 0\n')
  t.match(text, 'c_seconds_bucket{le="2"} 3\n')
  t.match(text, 'c_seconds_bucket{le="+Inf"} 4\n')
  t.match(text, 'c_seconds_sum 13.5\nc_seconds_count 4\n')
  t.equal(threads[2]?.total('a_total'), 6)
  t.equal(threads[2]?.value('a_total', { kind: 'y', side: 'l' }), 6)
  const labelled = threads[1]?.text('release="r1"') ?? ''
  t.match(labelled, 'a_total{kind="y",side="l",release="r1"} 6\n')
  t.match(labelled, 'b{release="r1"} 15\n')
  t.match(labelled, 'c_seconds_bucket{release="r1",le="1"} 0\n')
  t.match(labelled, 'c_seconds_count{release="r1"} 4\n')
})

t.test('what is not declared is a bug', async (t) => {
  const meters = new Meters(rows, new SharedArrayBuffer(meterBytes(rows, 1)), 0)
  t.throws(() => meters.of('nope'), /not declared/)
  t.throws(() => meters.of('a_total', { kind: 'z', side: 'l' }), /no series/)
  t.throws(() => meters.value('a_total', { kind: 'z', side: 'l' }), /no meter/)
  t.throws(() => new Meters(rows, new SharedArrayBuffer(meterBytes(rows, 1)), 1), RangeError)
  t.throws(() => meterBytes([...rows, ...rows], 1), /twice/)
})

t.test('the table of the program is sound: names and lines fit the exposition format', async (t) => {
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  for (const line of meters.text().trimEnd().split('\n')) {
    t.match(
      line,
      /^(# (HELP|TYPE) [a-z_0-9]+ .+|[a-z_0-9]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[\d.e+-]+)$/,
    )
  }
})
