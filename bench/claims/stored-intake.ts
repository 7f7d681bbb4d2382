import { parseArgs } from 'node:util'
import { pause } from '../../src/actor/clock.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { bucketAt, startRadosgw } from '../../test/engines/radosgw.js'
import { quantile, short } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { Stopwatch } from '../kit/usage.js'
import { itemOf, owner, paced, type Uploaded, uploads } from './intake-load.js'
import { type Ours, startOurs } from './intake-servers.js'

const help = `stored-intake: uploads that are in an object store before their receipts leave

  --count N       items of a run (10000), after a quarter as many that warm it up
  --bytes N       of each payload (10240)
  --uploaders N   that wait for each answer (512)
  --seconds N     of paced uploads (10)
  --signed        receipts are signed (RSA with 4096 bits); else they are not, and all else is measured
  --durability W  (disk,store)

Needs radosgw (Debian: ceph-mon ceph-osd radosgw).
`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    count: { type: 'string', default: '10000' },
    bytes: { type: 'string', default: '10240' },
    uploaders: { type: 'string', default: '512' },
    seconds: { type: 'string', default: '10' },
    signed: { type: 'boolean', default: false },
    durability: { type: 'string', default: 'disk,store' },
  },
})

async function sum({ urls }: Ours, name: string): Promise<number> {
  const text = await (await fetch(`${urls.upload}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(name))
  return lines.reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
}

const putsOf = (ours: Ours): Promise<number> => sum(ours, 'content_store_requests_total{operation="put"')

async function ready(ours: Ours): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) {
    const answer = await fetch(ours.url, {
      method: 'POST',
      headers: ours.headers(0),
      body: itemOf(100, turn),
    })
    await answer.arrayBuffer()
    if (answer.status === ours.status) return
    await pause(100)
  }
  throw new Error('the upload service takes nothing')
}

function shown({ latenciesMs, seconds, statuses }: Uploaded): string {
  const [p50, p99] = [0.5, 0.99].map((at) => short(quantile(latenciesMs, at)))
  const all = [...statuses].map(([status, count]) => `${count} of ${status}`).join(', ')
  return `${short(latenciesMs.length / seconds)} a second, p50 ${p50} ms, p99 ${p99} ms (${all})`
}

/** What a run costs: uploads, PUTs, processor time. */
async function measured(ours: Ours, name: string, run: () => Promise<Uploaded>): Promise<Uploaded> {
  const before = await putsOf(ours)
  const watch = new Stopwatch(ours.pid)
  const done = await run()
  const cpuUs = (watch.seconds() * 1e6) / done.latenciesMs.length
  const puts = (((await putsOf(ours)) - before) * 100) / done.latenciesMs.length
  say(
    `${name}: ${shown(done)}, ${short(puts)} PUTs for 100 items, ${short(cpuUs)} us of processor time an item`,
  )
  return done
}

async function main(): Promise<void> {
  const [count, bytes, uploaders, seconds] = [
    values.count,
    values.bytes,
    values.uploaders,
    values.seconds,
  ].map(Number) as [number, number, number, number]
  const server = await startRadosgw()
  const { endpoint, region, credentials } = server
  const ours = await startOurs({
    wallets: [normalizedAddress(owner)],
    unsigned: !values.signed,
    more: {
      CONTENT_STORE: 's3',
      S3_ENDPOINT: endpoint,
      S3_BUCKET: await bucketAt(server),
      S3_PREFIX: 'bench',
      S3_TIMEOUT_MS: '10000',
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      UPLOAD_DURABILITY: values.durability,
      CLUSTER_NODE: 'bench',
    },
  })
  try {
    await ready(ours)
    await uploads(ours, { bytes, count: Math.ceil(count / 4), uploaders })
    const full = await measured(ours, 'full load', () => uploads(ours, { bytes, count, uploaders }))
    const perSecond = full.latenciesMs.length / full.seconds / 2
    const all = Math.ceil(perSecond * seconds)
    await measured(ours, `half load (${short(perSecond)} a second)`, () =>
      paced(ours, { bytes, count: all, perSecond, connections: uploaders }),
    )
    await measured(ours, 'one after the other', () => uploads(ours, { bytes, count: 100, uploaders: 1 }))
  } finally {
    await ours.stop()
    await server.stop()
  }
}

if (values.help) say(help)
else await main()
