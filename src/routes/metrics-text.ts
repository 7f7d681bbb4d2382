import { loadsByName, type ThreadLoad } from '../actor/heartbeats.js'
import type { Meters } from '../actor/meter.js'
import { residentBytes } from '../actor/resident-memory.js'
import { programVersion } from '../actor/version.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import { type BulkTotals, bulkRate } from '../catalog/bulk-totals.js'
import type { SegmentTotals } from '../catalog/index-segments.js'
import { type HealthParts, healthOf } from './health.js'

export interface MetricsParts extends HealthParts {
  readonly vocabulary: Vocabulary
  readonly meters: Meters
  /** On every series, as dashboards of the network expect. */
  readonly release: string
  /** What the content on disk takes. */
  readonly usage?: () => { readonly blobs: number; readonly bytes: number }
  /** What the segments of the index have. */
  readonly segments?: () => SegmentTotals
}

/** A number that is read for each scrape: from tables that threads share, or from a meter that has another name, too. */
interface Shown {
  readonly name: string
  /** A name of other gateways of the network that breaks the rules of Prometheus: shown in their vocabulary only. */
  readonly isNetworkOnly?: true
  readonly kind: 'counter' | 'gauge'
  readonly help: string
  series(parts: MetricsParts): readonly (readonly [labels: string, value: number])[]
}

const sources = ['parent', 'trusted-gateways', 'ar-io-network', 'chunks', 'chunks-offset-aware', 'tx-data']

/** A metric of the program, whatever runs in it. */
interface ShownOfProcess extends Omit<Shown, 'series'> {
  series(): ReturnType<Shown['series']>
}

const ofThread = (value: (load: ThreadLoad) => number): ShownOfProcess['series'] => {
  return () => [...loadsByName()].map(([name, load]) => [`thread="${name}"`, value(load)])
}

const ofProcess: readonly ShownOfProcess[] = [
  {
    name: 'sluice_build_info',
    kind: 'gauge',
    help: 'Always 1; what runs here.',
    series: () => [
      [`version="${programVersion()}",node="${process.versions.node}",arch="${process.arch}"`, 1],
    ],
  },
  {
    name: 'thread_loop_delay_seconds',
    kind: 'gauge',
    help: 'How late the event loop of a thread was at most, within the last 15 to 30 seconds, by one timer a second.',
    series: ofThread(({ loopDelayMs }) => loopDelayMs / 1000),
  },
  {
    name: 'thread_processor_seconds_total',
    kind: 'counter',
    help: 'Time of the processors that a thread has had; threads of one name together.',
    series: ofThread(({ processorSeconds }) => processorSeconds),
  },
  {
    name: 'thread_heap_used_bytes',
    kind: 'gauge',
    help: 'JavaScript objects of a thread; threads of one name together.',
    series: ofThread(({ heapUsedBytes }) => heapUsedBytes),
  },
  {
    name: 'thread_heap_size_bytes',
    kind: 'gauge',
    help: 'JavaScript heap of a thread; threads of one name together.',
    series: ofThread(({ heapTotalBytes }) => heapTotalBytes),
  },
]

const shown: readonly Shown[] = [
  ...ofProcess,
  {
    name: 'gateway_healthy',
    kind: 'gauge',
    help: '1 while the health check says ok, else 0.',
    series: (parts) => [['', healthOf(parts).status === 'ok' ? 1 : 0]],
  },
  {
    name: 'chain_tip_height',
    kind: 'gauge',
    help: 'Height of the tip of the chain, as far as nodes stated; -1: not yet.',
    series: ({ tip }) => [['', tip.height]],
  },
  {
    name: 'index_lag_blocks',
    kind: 'gauge',
    help: 'Blocks between the highest block in the index and the tip of the chain.',
    series: ({ tip, following }) => [['', Math.max(0, tip.height - following.height)]],
  },
  {
    name: 'index_bundles_waiting',
    kind: 'gauge',
    help: 'Bundles that wait to be unbundled.',
    series: ({ following }) => [['', following.bundlesWaiting]],
  },
  {
    name: 'get_data_stream_successes_total',
    kind: 'counter',
    help: 'Payloads that sources brought whole: fetches_total{outcome="whole"}.',
    series: ({ meters }) =>
      sources.map((source) => [
        `source="${source}"`,
        meters.value('fetches_total', { source, outcome: 'whole' }),
      ]),
  },
  {
    name: 'contiguous_data_cache_not_found_total',
    kind: 'counter',
    help: 'Payloads that no source has: fetches_total{source="none",outcome="unknown"}.',
    series: ({ meters }) => [['', meters.value('fetches_total', { source: 'none', outcome: 'unknown' })]],
  },
  {
    name: 'get_chunk_total',
    kind: 'counter',
    help: 'Chunks requested by weave offset: chunk_requests_total.',
    series: ({ meters }) => [['', meters.total('chunk_requests_total')]],
  },
  {
    name: 'arweave_chunk_broadcast_total',
    kind: 'counter',
    help: 'Posted chunks that enough nodes took, or did not: chunk_posts_total.',
    series: ({ meters }) => [
      ['status="success"', meters.value('chunk_posts_total', { outcome: 'taken' })],
      ['status="fail"', meters.value('chunk_posts_total', { outcome: 'failed' })],
    ],
  },
  {
    name: 'block_importer_running',
    kind: 'gauge',
    help: '1 while blocks are imported, or looked for.',
    series: ({ following }) => [['', ['importing', 'following'].includes(following.state) ? 1 : 0]],
  },
  {
    name: 'cache_objects',
    kind: 'gauge',
    help: 'Payloads in the local store.',
    series: ({ usage }) => (usage === undefined ? [] : [['', usage().blobs]]),
  },
  {
    name: 'cache_objects_total',
    isNetworkOnly: true,
    kind: 'gauge',
    help: 'Payloads in the local store: cache_objects.',
    series: ({ usage }) => (usage === undefined ? [] : [['', usage().blobs]]),
  },
  {
    name: 'cache_size_bytes',
    kind: 'gauge',
    help: 'Bytes of payloads in the local store.',
    series: ({ usage }) => (usage === undefined ? [] : [['', usage().bytes]]),
  },
]

/** Metrics of the segments of the index: read for each scrape. */
const ofSegments: readonly Shown[] = [
  {
    name: 'index_segments',
    kind: 'gauge',
    help: 'Segments of the index, by how often their rows were merged.',
    series: ({ segments }) =>
      [...(segments?.().levels ?? [])].map(([level, count]) => [`level="${level}"`, count]),
  },
  {
    name: 'index_segment_rows',
    kind: 'gauge',
    help: 'Rows in segments of the index, with those that were removed since.',
    series: ({ segments }) => (segments === undefined ? [] : [['', segments().rows]]),
  },
  {
    name: 'index_segment_rows_removed',
    kind: 'gauge',
    help: 'Rows of segments that were removed, and are left out by the next merge.',
    series: ({ segments }) => (segments === undefined ? [] : [['', segments().removed]]),
  },
  {
    name: 'index_segment_bytes',
    kind: 'gauge',
    help: 'Bytes of the segments of the index.',
    series: ({ segments }) => (segments === undefined ? [] : [['', segments().bytes]]),
  },
  {
    name: 'index_merges_due',
    kind: 'gauge',
    help: 'Merges of segments of the index that are under way or wait for their turn.',
    series: ({ segments }) => (segments === undefined ? [] : [['', segments().mergesDue]]),
  },
  {
    name: 'index_damaged_rows',
    kind: 'gauge',
    help: 'Rows that were removed because pages of their segments are damaged, since the index began.',
    series: ({ segments }) => (segments === undefined ? [] : [['', segments().mended.rows]]),
  },
  {
    name: 'index_damaged_blocks',
    kind: 'gauge',
    help: 'Blocks that were removed with such rows, to be fetched anew.',
    series: ({ segments }) => (segments === undefined ? [] : [['', segments().mended.blocks]]),
  },
  {
    name: 'index_bulk_rows',
    kind: 'gauge',
    help: 'Rows that the last import in bulk brought into the index.',
    series: (parts) => ofBulk(parts, ({ rows }) => rows),
  },
  {
    name: 'index_bulk_rows_per_second',
    kind: 'gauge',
    help: 'Rows a second of the last import in bulk, from its begin to the rows that it listed last.',
    series: (parts) => ofBulk(parts, (bulk) => Math.round(bulkRate(bulk))),
  },
  {
    name: 'index_bulk_listed_timestamp_seconds',
    kind: 'gauge',
    help: 'When the last import in bulk listed rows last.',
    series: (parts) => ofBulk(parts, ({ listedSeconds }) => listedSeconds),
  },
  {
    name: 'index_bulk_batch_max_bytes',
    kind: 'gauge',
    help: 'The most bytes that rows of the last import in bulk took in memory before they were listed.',
    series: (parts) => ofBulk(parts, ({ batchBytesMax }) => batchBytesMax),
  },
]

/** Nothing where there was no import in bulk. */
function ofBulk(
  { segments }: Pick<MetricsParts, 'segments'>,
  what: (bulk: BulkTotals) => number,
): [string, number][] {
  const bulk = segments?.().bulk
  return bulk === undefined ? [] : [['', what(bulk)]]
}

/** All numbers in the Prometheus text format 0.0.4. */
export function metricsText(parts: MetricsParts): string {
  const label = `release="${parts.release}"`
  const isNetwork = parts.vocabulary.name === 'ar-io'
  const also = [...shown, ...ofSegments]
    .filter(({ isNetworkOnly }) => isNetwork || isNetworkOnly !== true)
    .flatMap((one) => seriesText(one, one.series(parts), label))
  return `${parts.meters.text(label, isNetwork)}${also.join('\n')}\n${processText(label)}`
}

/** The same without what only a gateway has: for services that run alone. */
export function serviceMetricsText(meters: Meters, release: string): string {
  const label = `release="${release}"`
  const also = ofProcess.flatMap((one) => seriesText(one, one.series(), label))
  return `${meters.text(label, false)}${also.join('\n')}\n${processText(label)}`
}

function seriesText(
  { name, kind, help }: Omit<Shown, 'series'>,
  series: ReturnType<Shown['series']>,
  label: string,
): string[] {
  const lines = series.map(([labels, value]) => {
    return `${name}{${labels === '' ? '' : `${labels},`}${label}} ${value}`
  })
  return lines.length === 0 ? [] : [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines]
}

/** The process as a whole, in the names that dashboards know. */
function processText(label: string): string {
  const { user, system } = process.cpuUsage()
  return [
    '# HELP process_resident_memory_bytes Memory of the whole process, files mapped into it included.',
    '# TYPE process_resident_memory_bytes gauge',
    `process_resident_memory_bytes{${label}} ${residentBytes()}`,
    '# HELP process_cpu_seconds_total Processor time of all threads.',
    '# TYPE process_cpu_seconds_total counter',
    `process_cpu_seconds_total{${label}} ${(user + system) / 1e6}`,
    '',
  ].join('\n')
}
