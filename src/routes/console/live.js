/** The part of the console that shows threads, what is slow and why. */
import { grown, quantile, slowness, threads, time } from './load.js'
import { bytes, number } from './metrics.js'
import { byId } from './session.js'
import { cell, element, fill, table } from './view.js'

/** Readings of five minutes. */
const readingsMax = 150
const readings = []
const duration = 'http_request_duration_seconds'

export function live(before, now, seconds) {
  readings.push(now)
  if (readings.length > readingsMax) readings.shift()
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
  fill(byId('threads'), [table(['Thread', 'Processor', 'Late', 'Heap'], rows, 'No thread has reported yet.')])
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
