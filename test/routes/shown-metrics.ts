import { Heartbeats, listenForHeartbeats } from '../../src/actor/heartbeats.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { ownThread } from '../../src/actor/priority.js'
import { Following, Tip } from '../../src/actor/shared.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import { type MetricsParts, metricsText } from '../../src/routes/metrics-text.js'
import { HandClock } from '../names/hand-clock.js'

/** What a scrape needs, with nothing counted yet; `more` takes the place of its parts. */
export function metricsParts(more: Partial<MetricsParts> = {}): MetricsParts {
  return {
    vocabulary: vocabularies.neutral,
    meters: new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0),
    following: new Following(),
    tip: new Tip(),
    clock: new HandClock(),
    startedMs: 0,
    release: 'r-1',
    usage: () => ({ blobs: 5, bytes: 600 }),
    ...more,
  }
}

/** Every name that a series of a scrape may have, in the program's own vocabulary; of histograms those with their endings. */
export function seriesNames(): Set<string> {
  // Series of threads are there where a thread gives signs of life.
  const heartbeats = new Heartbeats()
  heartbeats.claim('edge-1', ownThread())
  listenForHeartbeats(heartbeats)
  const names = new Set<string>()
  for (const [, name = '', kind] of metricsText(metricsParts()).matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    if (kind !== 'histogram') names.add(name)
    else for (const ending of ['bucket', 'sum', 'count']) names.add(`${name}_${ending}`)
  }
  return names
}
