/** The part of the console that draws: charts of the last five minutes, threads, what is slow and why. */
import { chart, History, looksMax } from './charts.js'
import { grown, quantile, slowness, threads, time } from './load.js'
import { bytes, number, rate, sum } from './metrics.js'
import { byId } from './session.js'
import { cell, element, fill, table } from './view.js'

const history = new History()
/** Earlier readings; the first of them is at most five minutes old. */
const readings = []
const duration = 'http_request_duration_seconds'

export function live(before, now, seconds, { info, cache }) {
  readings.push(now)
  if (readings.length > looksMax) readings.shift()
  const per = (name, part) => rate(before, now, seconds, name, part)
  const line = (name, value) => ({ name, values: history.add(name, value) })
  const hits = per('contiguous_data_cache_hit_total')
  const misses = per('contiguous_data_cache_miss_total')
  const latency = before === undefined ? [] : (grown(before, now, duration).get('') ?? [])
  const good = per('http_requests_total', 'status="2xx"') + per('http_requests_total', 'status="3xx"')
  const each = (value) => `${number(value)} /s`
  const flow = (value) => `${bytes(value)}/s`
  fill(byId('charts'), [
    chart(
      'Requests',
      [
        line('answered', good),
        line('client faults', per('http_requests_total', 'status="4xx"')),
        line('our failures', per('http_requests_total', 'status="5xx"')),
      ],
      each,
    ),
    chart(
      'Bytes',
      [line('sent', per('get_data_stream_bytes_total')), line('fetched', per('fetched_bytes_total'))],
      flow,
    ),
    chart(
      'Hit rate',
      [line('cache', hits + misses === 0 ? undefined : (100 * hits) / (hits + misses))],
      (value) => {
        return `${value.toFixed(0)} %`
      },
    ),
    chart('Latency', [line('p50', quantile(latency, 0.5)), line('p99', quantile(latency, 0.99))], time),
    chart('Index lag', [line('behind', info.index.lag ?? 0)], (value) => `${number(value)} blocks`),
    chart(
      'Disk',
      [line('content', cache.bytes), line('free', sum(now, 'data_disk_free_bytes') || undefined)],
      bytes,
    ),
  ])
  const found = threads(before, now, seconds)
  showThreads(found)
  showSlow(now, slowness(before, now, seconds, found))
}

function showThreads(found) {
  const rows = found.map(({ name, share, lateSeconds, heapBytes }) => [
    cell(name, 'mono'),
    cell(
      share === undefined
        ? ''
        : [
            element('meter', { min: '0', max: '1', high: '0.9', value: share.toFixed(3), title: name }),
            ` ${(share * 100).toFixed(0)} %`,
          ],
      'number',
    ),
    cell(time(lateSeconds), 'number'),
    cell(bytes(heapBytes), 'number'),
  ])
  fill(byId('threads'), [
    table(['Thread', 'Processor', 'Late', 'Heap'], rows, 'No thread has told of itself yet.'),
  ])
}

function showSlow(now, reasons) {
  const routes = [...grown(readings[0], now, duration, 'route')].flatMap(([route, buckets]) => {
    const count = buckets.at(-1)?.count ?? 0
    return count === 0 ? [] : [{ route, count, half: quantile(buckets, 0.5), most: quantile(buckets, 0.99) }]
  })
  routes.sort((one, other) => other.most - one.most)
  const rows = routes.map(({ route, count, half, most }) => [
    cell(route, 'mono'),
    cell(number(count), 'number'),
    cell(time(half), 'number'),
    cell(time(most), 'number'),
  ])
  const list = element(
    'ul',
    {},
    reasons.map((reason) => element('li', {}, reason)),
  )
  fill(byId('slow'), [
    reasons.length === 0 ? element('p', { class: 'quiet' }, 'Nothing holds answers up now.') : list,
    table(['Routes', 'Answers', 'p50', 'p99'], rows, 'Nothing was answered since this page is open.'),
  ])
}
