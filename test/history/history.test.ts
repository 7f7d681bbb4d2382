/** What the console remembers: rows that are thinned out, lines that do not crowd each other out, and what is read of them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { LogRingReader, logRingWriter, noteChange, shareLogRing } from '../../src/actor/log-ring.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { type Column, columnsOf } from '../../src/history/columns.js'
import { HistoryStore, keptSeconds, openHistory, rowSeconds } from '../../src/history/history-store.js'
import { HistoryRecorder } from '../../src/history/recorder.js'
import { diskForecast, historyReport, linesPage } from '../../src/history/report.js'
import { settingChanges } from '../../src/history/starts.js'
import { HandClock } from '../names/hand-clock.js'
import { scratch } from '../scratch.js'

const start = { versions: 'Sluice 1', settings: {} }
const startMs = 1_800_000_000_000
const second = startMs / 1000

function opened(t: { teardown(act: () => Promise<void>): void }): HistoryStore {
  const store = new HistoryStore(scratch('history'))
  t.teardown(() => store.close())
  return store
}

const columns = [
  ['count', 'counter'],
  ['level', 'gauge'],
] as const

/** A row each 10 s: a counter that grows by one, and a gauge that is the number of the row. */
function fill(store: HistoryStore, rows: number): void {
  store.write(() => {
    const set = store.setOf(columns)
    for (let at = 0; at < rows; at += 1) store.putRow(second + at * rowSeconds, set, Float64Array.of(1, at))
  })
}

t.test('a day of rows is bounded, and loses nothing that was counted', async (t) => {
  const store = opened(t)
  const all = keptSeconds / rowSeconds
  fill(store, all)
  const rows = [...store.rows(second, second + keptSeconds)]
  t.ok(rows.length < 2100, `${rows.length} rows`)
  t.equal(
    rows.reduce((sum, { values }) => sum + (values[0] ?? 0), 0),
    all,
  )
  t.equal(
    rows.reduce((sum, { seconds }) => sum + seconds, 0),
    keptSeconds,
  )
  fill(store, 2 * all)
  const later = [...store.rows(0, second + 3 * keptSeconds)]
  t.ok(later.length < 2200, 'what is older than a day is gone')
  t.ok((later[0]?.at ?? 0) >= second + keptSeconds - 60)
})

t.test('a report has equal steps, and says where the program did not run', async (t) => {
  const store = opened(t)
  fill(store, 30)
  const report = historyReport(store, second - 100, second + 300, 10)
  t.equal(report.covered.length, 40)
  t.strictSame(report.covered.slice(8, 12), [0, 0, 10, 10])
  t.strictSame(report.counters.count?.slice(8, 12), [0, 0, 1, 1])
  t.strictSame(report.gauges.level?.slice(8, 12), [null, null, 0, 1])
  const day = historyReport(store, second - keptSeconds + 300, second + 300, 60)
  t.ok(day.covered.length <= 300)
  t.equal(
    day.counters.count?.reduce((sum, one) => sum + one),
    30,
  )
})

t.test('rows of another version have columns of their own', async (t) => {
  const store = opened(t)
  fill(store, 3)
  store.write(() => store.putRow(second + 30, store.setOf([['level', 'gauge']]), Float64Array.of(7)))
  const { gauges, counters } = historyReport(store, second, second + 40, 10)
  t.strictSame(
    [gauges.level, counters.count],
    [
      [0, 1, 2, 7],
      [1, 1, 1, 0],
    ],
  )
})

t.test('the pace of the disk', async (t) => {
  const store = opened(t)
  t.equal(diskForecast(store, second), undefined)
  const free = (at: number): number => 10e9 - at * 1e6
  store.write(() => {
    const set = store.setOf([['data_disk_free_bytes', 'gauge']])
    for (let at = 0; at < 360; at += 1)
      store.putRow(second + at * rowSeconds, set, Float64Array.of(at === 0 ? 0 : free(at)))
  })
  const forecast = diskForecast(store, second + 3600)
  t.match(forecast, { freeBytes: free(359), bytesPerDay: -8_640_000_000 })
  t.ok(Math.abs((forecast?.fullInSeconds ?? 0) - (free(359) - 16 * 2 ** 20) / 1e5) < 10)
})

t.test('bad requests of strangers do not crowd out other lines; pages leave none out', async (t) => {
  const store = opened(t)
  const line = (msg: string, more = {}): string => JSON.stringify({ msg, ...more })
  store.write(() => {
    for (let at = 0; at < 50; at += 1)
      store.putLine('events', startMs + at, at === 7 ? 50 : 30, line(`event ${at}`))
    for (let at = 0; at < 10_100; at += 1)
      store.putLine('requests', startMs + 100, 40, line('request', { requestId: `id ${at}` }))
  })
  const wish = { kinds: ['events', 'requests'], levelMin: 30, find: '', limit: 200 } as const
  const found: unknown[] = []
  let pages = 0
  for (let cursor: string | undefined; ; pages += 1) {
    const page = linesPage(store, { ...wish, find: 'EVENT', ...(cursor === undefined ? {} : { cursor }) })
    found.push(...page.lines)
    if (page.next === undefined) break
    cursor = page.next
  }
  t.ok(pages > 1, 'a page looks at so many lines only')
  t.strictSame(
    found,
    Array.from({ length: 50 }, (_, at) => ({ msg: `event ${49 - at}` })),
  )
  t.strictSame(linesPage(store, { ...wish, kinds: ['events'], levelMin: 50 }).lines, [{ msg: 'event 7' }])
  t.equal(linesPage(store, { ...wish, find: '"id 10099"', limit: 1 }).lines.length, 1)
  t.strictSame(
    linesPage(store, { ...wish, kinds: ['requests'], find: '"id 5"' }).lines,
    [],
    'the oldest is gone',
  )
})

t.test('lines of all threads come once, whole and in order; what was overwritten is counted', async (t) => {
  shareLogRing()
  const [reader, write] = [new LogRingReader(), logRingWriter()]
  write?.('{"msg":"one"}\n')
  const long = JSON.stringify({
    level: 50,
    msg: 'long',
    err: { message: 'x'.repeat(9000), stack: 'é'.repeat(9000) },
  })
  write?.(long)
  const { lines } = reader.read()
  t.equal(lines[0], '{"msg":"one"}')
  t.match(JSON.parse(lines[1] ?? ''), {
    level: 50,
    msg: 'long',
    isCut: true,
    err: { message: 'x'.repeat(400) },
  })
  t.strictSame(reader.read(), { lines: [], lost: 0 })
  const module = new URL('../../src/actor/log-ring.js', import.meta.url).href
  const script = `import('${module}').then(({ logRingWriter }) => {
    const write = logRingWriter()
    for (let at = 0; at < 200; at += 1) write(JSON.stringify({ at }))
  })`
  const threads = [1, 2].map(() => new Worker(script, { eval: true }))
  await Promise.all(threads.map((thread) => new Promise((resolve) => thread.once('exit', resolve))))
  const numbers = reader.read().lines.map((line) => (JSON.parse(line) as { at: number }).at)
  t.equal(numbers.length, 400)
  t.strictSame(
    numbers.sort((one, other) => one - other).filter((_, at) => at % 2 === 0),
    Array.from({ length: 200 }, (_, at) => at),
  )
  for (let at = 0; at < 3000; at += 1) write?.(`{"at":${at}}`)
  const flooded = reader.read()
  t.strictSame([flooded.lines.length, flooded.lost, flooded.lines.at(-1)], [1024, 1976, '{"at":2999}'])
})

t.test('the recorder keeps growth, lines and changes, also those of the run before', async (t) => {
  shareLogRing()
  const path = scratch('history')
  const clock = new HandClock()
  const memory = new SharedArrayBuffer(meterBytes(meterTable, 1))
  const meters = new Meters(meterTable, memory, 0)
  const requests = meters.of('http_requests_total', { route: 'data', status: '2xx' })
  const run = (settings: Record<string, string>): HistoryRecorder =>
    new HistoryRecorder({
      store: new HistoryStore(path),
      columns: columnsOf(meters, { memory: () => 5 }),
      clock,
      log: silentLog,
      start: { ...start, settings },
    })
  const first = run({ PORT: '1' })
  requests.add(5)
  first.addRow()
  logRingWriter()?.(
    JSON.stringify({ level: 40, time: new Date(clock.now()).toISOString(), msg: 'slow', requestId: 'r1' }),
  )
  logRingWriter()?.('{"msg":"half a li')
  noteChange({ kind: 'order', what: 'PUT block-data', by: 'admin' }, clock.now())
  await first.close()
  // Each process has a ring of its own.
  shareLogRing()
  const second = run({ PORT: '2', LOG_LEVEL: 'warn' })
  requests.add(2)
  await second.close()
  const third = run({ PORT: '2', LOG_LEVEL: 'warn' })
  const store = new HistoryStore(path)
  t.teardown(async () => {
    await third.close()
    await store.close()
  })
  const now = Math.floor(clock.now() / 1000)
  const rows = historyReport(store, now - 60, now + 60, 10)
  t.equal(
    rows.counters['http_requests_total{route="data",status="2xx"}']?.reduce((sum, one) => sum + one),
    7,
  )
  const wish = { levelMin: 30, find: '', limit: 50 }
  t.match(linesPage(store, { ...wish, kinds: ['requests'] }).lines, [{ requestId: 'r1' }])
  const changes = linesPage(store, { ...wish, kinds: ['changes'] }).lines as { change: { what: string } }[]
  t.strictSame(changes.map(({ change }) => change.what).reverse(), [
    'started: Sluice 1',
    'PUT block-data',
    'stopped',
    'started: Sluice 1',
    'LOG_LEVEL: default -> warn',
    'PORT: 1 -> 2',
    'stopped',
    'started: Sluice 1',
  ])
})

t.test('a run that did not stop is named, and settings that changed', async (t) => {
  t.strictSame(settingChanges({ A: '1', B: '2' }, { B: '3', C: '4' }), [
    'A: 1 -> default',
    'B: 2 -> 3',
    'C: default -> 4',
  ])
  const path = scratch('history')
  const clock = new HandClock()
  const parts = { columns: [] as Column[], clock, log: silentLog, start }
  const lost = new HistoryStore(path)
  new HistoryRecorder({ ...parts, store: lost })
  const recorder = new HistoryRecorder({ ...parts, store: new HistoryStore(path) })
  const { lines } = linesPage(lost, { kinds: ['changes'], levelMin: 0, find: 'without a stop', limit: 5 })
  t.equal(lines.length, 1)
  await recorder.close()
  await lost.close()
})

t.test('a history whose list of tables is overwritten is removed, and a new one begins', async (t) => {
  const path = scratch('history-overwritten')
  const store = openHistory(path, () => t.fail('it is sound'))
  await store.close()
  const file = join(path, 'data.mdb')
  const bytes = readFileSync(file)
  // All pages behind the two headers.
  writeFileSync(file, bytes.fill(0, 2 * 4096))
  const removed: string[] = []
  const fresh = openHistory(path, (error) => removed.push(error.message))
  t.match(removed, [/data\.mdb is broken: .*See "A database is broken"/s])
  await fresh.close()
})
