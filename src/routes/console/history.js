/** The part of the console that shows a stretch of the last 24 hours. */
import { Chart } from './charts.js'
import { time } from './load.js'
import { showChanges } from './log.js'
import { bytes, number, span } from './metrics.js'
import { labelsOf, levels, quantiles, rates, shares, timesOf } from './report.js'
import { ask, byId, isIn } from './session.js'
import { element, fill } from './view.js'

const everyMs = 10_000
const duration = 'http_request_duration_seconds'
const each = (value) => `${number(value)} /s`
const flow = (value) => `${bytes(value)}/s`
const charts = {
  requests: new Chart('Requests', each),
  failures: new Chart('Failures by code', each),
  latency: new Chart('Latency', time),
  bytes: new Chart('Bytes', flow),
  hits: new Chart('Answered from the cache', (value) => `${value.toFixed(0)} %`),
  disk: new Chart('Free on the disk', bytes),
  memory: new Chart('Memory', bytes),
  sockets: new Chart('Connections', number),
  index: new Chart('Index', number),
  uploads: new Chart('Uploads', each),
}
let minutes = 15
let route = ''
let timer
let report
/** Seconds at which something was changed. */
let changes = []

/** Reads the stretch that is chosen and what changed, and again after a while. */
export async function showHistory() {
  clearTimeout(timer)
  if (!isIn() || document.hidden) return
  try {
    const [read, changed] = await Promise.all([ask(`history?minutes=${minutes}`), showChanges()])
    report = read
    changes = changed
    if (byId('charts').childElementCount === 0)
      fill(
        byId('charts'),
        Object.values(charts).map(({ figure }) => figure),
      )
    draw()
    byId('history-said').textContent = ''
  } catch (error) {
    if (isIn()) byId('history-said').textContent = error.message
  }
  clearTimeout(timer)
  if (isIn()) timer = setTimeout(() => void showHistory(), everyMs)
}

function draw() {
  const times = timesOf(report)
  const line = (name, values) => ({ name, values })
  const show = (chart, ...lines) => charts[chart].show(times, lines, changes)
  const requests = (status) => rates(report, 'http_requests_total', `status="${status}"`)
  const redirected = requests('3xx')
  show(
    'requests',
    line(
      'answered',
      requests('2xx').map((value, at) => (value === null ? null : value + redirected[at])),
    ),
    line('client faults', requests('4xx')),
    line('our failures', requests('5xx')),
  )
  const codes = labelsOf(report, 'http_failures_total', 'code')
  show(
    'failures',
    ...codes.map((code) => line(code, rates(report, 'http_failures_total', `code="${code}"`))),
    ...(codes.length === 0
      ? [
          line(
            'none',
            times.map(() => null),
          ),
        ]
      : []),
  )
  const part = route === '' ? '' : `route="${route}"`
  show(
    'latency',
    line('p50', quantiles(report, duration, 0.5, part)),
    line('p99', quantiles(report, duration, 0.99, part)),
  )
  show(
    'bytes',
    line('sent', rates(report, 'get_data_stream_bytes_total')),
    line('fetched', rates(report, 'fetched_bytes_total')),
  )
  const [hits, misses] = ['hit', 'miss'].map((word) => rates(report, `contiguous_data_cache_${word}_total`))
  show('hits', line('share', shares(hits, misses)))
  show('disk', line('free', levels(report, 'data_disk_free_bytes')))
  show('memory', line('resident', levels(report, 'process_resident_memory_bytes')))
  show(
    'sockets',
    line('open', levels(report, 'sockets_open')),
    line('requests under way', levels(report, 'flows_in_flight')),
  )
  show(
    'index',
    line('blocks behind', levels(report, 'index_lag_blocks')),
    line('items a second', rates(report, 'data_items_indexed_total')),
  )
  show('uploads', line('accepted', rates(report, 'upload_items_accepted_total')))
  routes()
  byId('history-disk').textContent = forecast(report.disk)
}

/** Keeps the list of routes: those with requests in the stretch, and the chosen one. */
function routes() {
  const found = new Set(labelsOf(report, `${duration}_bucket`, 'route'))
  if (route !== '') found.add(route)
  const names = ['', ...[...found].sort()]
  const list = byId('history-route')
  if (names.join() === [...list.options].map(({ value }) => value).join()) return
  fill(
    list,
    names.map((name) => element('option', { value: name }, name === '' ? 'all routes' : name)),
  )
  list.value = route
}

function forecast(disk) {
  if (disk === undefined) return 'How long the disk lasts is known after half an hour.'
  const { freeBytes, bytesPerDay, fullInSeconds, overSeconds } = disk
  const over = `of the last ${span(overSeconds)}`
  if (fullInSeconds === undefined || fullInSeconds > 365 * 86_400)
    return `The disk has ${bytes(freeBytes)} free; at the pace ${over} it does not fill up within a year.`
  return `The disk has ${bytes(freeBytes)} free and loses ${bytes(-bytesPerDay)} a day: at the pace ${over} it is full in about ${span(fullInSeconds)}. The cache stops growing at its bound.`
}

byId('history-range').addEventListener('change', (event) => {
  minutes = Number(event.target.value)
  void showHistory()
})
byId('history-route').addEventListener('change', (event) => {
  route = event.target.value
  draw()
})
document.addEventListener('visibilitychange', () => void showHistory())
