import { spawnSync } from 'node:child_process'
import t from 'tap'
import { Heartbeats, listenForHeartbeats } from '../../src/actor/heartbeats.js'
import { ownThread } from '../../src/actor/priority.js'
import { Following, Tip } from '../../src/actor/shared.js'
import { programVersion } from '../../src/actor/version.js'
import { vocabularies } from '../../src/attest/vocabulary.js'
import { metricsText } from '../../src/routes/metrics-text.js'
import { metricsParts } from './shown-metrics.js'

t.test('numbers stand under the names of other gateways too, each series with its release', async (t) => {
  const following = new Following()
  const parts = metricsParts({ following, vocabulary: vocabularies['ar-io'] })
  const { meters } = parts
  following.state = 'following'
  meters.of('fetches_total', { source: 'chunks', outcome: 'whole' }).add(3)
  meters.of('fetches_total', { source: 'none', outcome: 'unknown' }).add(2)
  meters.of('chunk_requests_total', { outcome: 'node' }).add(4)
  meters.of('chunk_requests_total', { outcome: 'absent' }).add(1)
  meters.of('chunk_posts_total', { outcome: 'taken' }).add(7)
  meters.of('arns_resolution_duration_seconds').add(0.2)
  meters.of('arns_resolver_answers_total', { resolver: 'local', outcome: 'found' }).add(6)
  const text = metricsText(parts)
  for (const line of [
    'get_data_stream_successes_total{source="chunks",release="r-1"} 3',
    'contiguous_data_cache_not_found_total{release="r-1"} 2',
    'get_chunk_total{release="r-1"} 5',
    'arweave_chunk_broadcast_total{status="success",release="r-1"} 7',
    'block_importer_running{release="r-1"} 1',
    'arns_resolution_duration_seconds_bucket{release="r-1",le="0.25"} 1',
    'arns_resolution_time_ms_bucket{release="r-1",le="250"} 1',
    'arns_resolution_time_ms_sum{release="r-1"} 200',
    'arns_resolution_resolver_count{resolver="local",outcome="found",release="r-1"} 6',
    'cache_objects_total{release="r-1"} 5',
    'cache_size_bytes{release="r-1"} 600',
    'last_fork_depth{release="r-1"} 0',
    'rate_limit_tokens_consumed_total{bucket_type="resource",token_type="regular",domain="data",release="r-1"} 0',
  ]) {
    t.ok(text.split('\n').includes(line), line)
  }
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
  t.same(names, [...new Set(names)], 'no name twice')
  for (const line of text.split('\n')) {
    if (line !== '' && !line.startsWith('#')) t.match(line, /release="r-1"/)
  }
})

t.test('version, health, progress of the index, and the load of each thread', async (t) => {
  const tip = new Tip()
  const following = new Following()
  const parts = metricsParts({ tip, following })
  t.match(metricsText(parts), /^gateway_healthy\{release="r-1"\} 0$/m, 'no node has answered')
  tip.move(100)
  following.height = 93
  const heartbeats = new Heartbeats()
  listenForHeartbeats(heartbeats)
  const load = { heapUsedBytes: 10, heapTotalBytes: 30, loopDelayMs: 250 }
  for (const name of ['edge-1', 'source/proof', 'source/proof']) {
    heartbeats.carry(heartbeats.claim(name, ownThread()) ?? -1, load)
  }
  const lines = metricsText(parts).split('\n')
  for (const line of [
    `sluice_build_info{version="${programVersion()}",node="${process.versions.node}",arch="${process.arch}",release="r-1"} 1`,
    'gateway_healthy{release="r-1"} 1',
    'chain_tip_height{release="r-1"} 100',
    'index_lag_blocks{release="r-1"} 7',
    'thread_loop_delay_seconds{thread="edge-1",release="r-1"} 0.25',
    'thread_heap_used_bytes{thread="source/proof",release="r-1"} 20',
    'thread_heap_size_bytes{thread="source/proof",release="r-1"} 60',
  ]) {
    t.ok(lines.includes(line), line)
  }
})

t.test('segments of the index by level, their rows and bytes', async (t) => {
  const totals = {
    levels: new Map([
      [0, 3],
      [2, 1],
    ]),
    rows: 1000,
    bytes: 180_000,
    removed: 4,
    mergesDue: 2,
    mended: { segments: 1, rows: 17, blocks: 3 },
    bulk: { rows: 900, batches: 2, beganSeconds: 1000, listedSeconds: 1003, batchBytesMax: 5000 },
  }
  const lines = metricsText(metricsParts({ segments: () => totals })).split('\n')
  for (const line of [
    'index_segments{level="0",release="r-1"} 3',
    'index_segments{level="2",release="r-1"} 1',
    'index_segment_rows{release="r-1"} 1000',
    'index_segment_rows_removed{release="r-1"} 4',
    'index_segment_bytes{release="r-1"} 180000',
    'index_merges_due{release="r-1"} 2',
    'index_damaged_rows{release="r-1"} 17',
    'index_damaged_blocks{release="r-1"} 3',
    'index_bulk_rows{release="r-1"} 900',
    'index_bulk_rows_per_second{release="r-1"} 300',
    'index_bulk_listed_timestamp_seconds{release="r-1"} 1003',
    'index_bulk_batch_max_bytes{release="r-1"} 5000',
  ]) {
    t.ok(lines.includes(line), line)
  }
  const without = metricsText(metricsParts({ segments: () => ({ ...totals, bulk: undefined }) }))
  t.notMatch(without, /^index_bulk_\w+\{/m, 'no import in bulk, no numbers of it')
})

const promtool = spawnSync('promtool', ['--version']).error === undefined
t.test(
  'promtool finds no fault in the metrics',
  { skip: promtool ? false : 'promtool is not installed (Debian: prometheus)' },
  async (t) => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: metricsText(metricsParts()),
      encoding: 'utf8',
    })
    t.equal(status, 0, stdout + stderr)
  },
)
