/** How long answers took, how busy threads are, and what is slow and why, from two readings of the metrics. */
import { bytes, number, rate, sum } from './metrics.js'

const labelOf = (labels, name) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1]

/** How much each bucket of a histogram grew: {le, count} with counts that add up, by a label's value ('' for all together). */
export function grown(before, now, name, label) {
  const found = new Map()
  const earlier = new Map((before?.get(`${name}_bucket`) ?? []).map(({ labels, value }) => [labels, value]))
  for (const { labels, value } of now.get(`${name}_bucket`) ?? []) {
    const key = label === undefined ? '' : (labelOf(labels, label) ?? '')
    const buckets = found.get(key) ?? new Map()
    const le = Number(labelOf(labels, 'le')?.replace('+Inf', 'Infinity'))
    buckets.set(le, (buckets.get(le) ?? 0) + Math.max(0, value - (earlier.get(labels) ?? 0)))
    found.set(key, buckets)
  }
  return new Map(
    [...found].map(([key, buckets]) => [
      key,
      [...buckets].map(([le, count]) => ({ le, count })).sort((one, other) => one.le - other.le),
    ]),
  )
}

/** A quantile of a histogram by straight lines inside its buckets, seconds; undefined where nothing was counted. */
export function quantile(buckets, share) {
  const all = buckets.at(-1)?.count ?? 0
  if (all === 0) return undefined
  const wanted = all * share
  let low = 0
  let below = 0
  for (const { le, count } of buckets) {
    if (count >= wanted)
      return le === Infinity ? low : low + ((le - low) * (wanted - below)) / (count - below || 1)
    low = le
    below = count
  }
  return low
}

/** A time for people. */
export function time(seconds) {
  if (seconds < 1) return `${number(seconds * 1000)} ms`
  return `${number(seconds)} s`
}

/** Threads with what they took of one processor since `before` (0 to 1, undefined at first), the busiest first. */
export function threads(before, now, seconds) {
  const heap = now.get('thread_heap_used_bytes') ?? []
  return heap
    .map(({ labels, value }) => {
      const name = labelOf(labels, 'thread') ?? ''
      const part = `thread="${name}"`
      return {
        name,
        heapBytes: value,
        lateSeconds: sum(now, 'thread_loop_delay_seconds', part),
        share:
          before === undefined
            ? undefined
            : rate(before, now, seconds, 'thread_processor_seconds_total', part),
      }
    })
    .sort((one, other) => (other.share ?? 0) - (one.share ?? 0) || one.name.localeCompare(other.name))
}

/** What makes answers slow now, in plain words; empty where nothing does. */
export function slowness(before, now, seconds, found) {
  const per = (name, part) => rate(before, now, seconds, name, part)
  const findings = []
  for (const { name, lateSeconds, share = 0 } of found) {
    const isEdge = name.startsWith('edge')
    if (isEdge && lateSeconds > 0.05)
      findings.push(
        `Requests wait for ${name}: within half a minute its loop was late by ${time(lateSeconds)}.`,
      )
    if (share > 0.9) findings.push(`${name} takes ${(share * 100).toFixed(0)} % of a processor.`)
  }
  const misses = per('contiguous_data_cache_miss_total')
  const hits = per('contiguous_data_cache_hit_total')
  if (misses > 0 && misses > hits)
    findings.push(
      `Most content is not here yet: ${number(misses)} a second wait for a source, ${number(hits)} do not.`,
    )
  const failed = per('fetches_total', 'outcome="broken"') + per('fetches_total', 'outcome="failed"')
  if (failed > 0.2)
    findings.push(`${number(failed)} fetches a second break off or fail: the next source is used.`)
  const waiting = sum(now, 'graphql_queries_waiting')
  if (waiting > 0) findings.push(`${number(waiting)} queries wait for a query thread.`)
  if (per('client_stalls_total') > 0)
    findings.push('Clients take their bytes so slowly that they are cut off.')
  if (per('accept_pauses_total') > 0) findings.push('New connections wait: as many are open as may be.')
  const held = per('rate_limit_holds_total')
  if (held > 0) findings.push(`${number(held)} answers a second are held back by a limit.`)
  const free = sum(now, 'data_disk_free_bytes')
  const size = sum(now, 'data_disk_size_bytes')
  if (size > 0 && free < size / 20) findings.push(`The disk has ${bytes(free)} left of ${bytes(size)}.`)
  return findings
}
