/** A machine that is gone: another one takes over what it has accepted, and it goes on under another name when it comes back. */
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { bucketAt, radosgwAbsent, startRadosgw, storeSettings } from '../engines/radosgw.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { headerOf } from '../signed-item.js'
import { suspend } from '../suspend.js'
import { type Running, run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 34))

function item(number: number): { readonly id: string; readonly bytes: Uint8Array } {
  const bytes = signItem(signer, {}, Buffer.alloc(20_000, `payload ${number} `))
  const header = headerOf(bytes)
  return { id: header.id, bytes }
}

/** Its receipt: what comes before the store is open is refused. */
async function accepted({ urls }: Running, bytes: Uint8Array): Promise<void> {
  await eventually('it is accepted', async () => {
    const answer = await fetch(`${urls.upload}/v1/tx`, { method: 'POST', body: bytes })
    await answer.arrayBuffer()
    return answer.status === 200
  })
}

async function state({ urls }: Running, id: string): Promise<string | undefined> {
  const answer = await fetch(`${urls.upload}/v1/tx/${id}/status`)
  const text = await answer.text()
  return answer.status === 200 ? (JSON.parse(text) as { readonly status?: string }).status : undefined
}

const lacking = postgresFolder === undefined ? { skip: 'no PostgreSQL here' } : radosgwAbsent

const startEngines = async () => ({ objects: await startRadosgw(), postgres: await startPostgres() })
let starting: ReturnType<typeof startEngines> | undefined
t.teardown(async () => {
  const engines = await starting
  await engines?.objects.stop()
  await engines?.postgres.stop()
})

/** Settings of machines with a bucket and a database of their own. */
async function shared(name: string): Promise<Record<string, string>> {
  starting ??= startEngines()
  const { objects, postgres } = await starting
  return {
    DEVNET_SEED: 'false',
    DEVNET_BLOCK_MS: '500',
    SERVICES: 'gateway,upload',
    ...storeSettings(objects, await bucketAt(objects)),
    UPLOAD_FREE_ITEM_BYTES: '40000000',
    CLUSTER_DATABASE_URL: await postgres.database(name),
    CLUSTER_TAKEOVER_SECONDS: '12',
  }
}

t.test('what a killed machine has accepted becomes permanent by another one', lacking, async (t) => {
  const settings = await shared('killed')
  const [one, two] = [scratch('one'), scratch('two')]
  const waits = { UPLOAD_BUNDLE_WAIT_SECONDS: '3600' }
  const first = await run(t, one, { ...settings, ...waits, CLUSTER_NODE: 'first' })
  const second = await run(t, two, { ...settings, UPLOAD_BUNDLE_WAIT_SECONDS: '1', CLUSTER_NODE: 'second' })
  const items = [1, 2, 3].map(item)
  for (const { bytes } of items) await accepted(first, bytes)
  await first.kill()
  await eventually('they are permanent', async () => {
    const states = await Promise.all(items.map(({ id }) => state(second, id)))
    return states.every((one) => one === 'FINALIZED') ? true : undefined
  })
  const back = await run(t, one, { ...settings, ...waits, CLUSTER_NODE: 'first' })
  const later = item(4)
  await accepted(back, later.bytes)
  t.match(JSON.stringify(back.log), /were taken over by another one/)
  t.equal(await back.stop(), 0)
  t.equal(await second.stop(), 0)
})

t.test('a machine that stood still and goes on posts nothing that another one has', lacking, async (t) => {
  const settings = await shared('suspended')
  // Its items are due while it stands still.
  const waits = { UPLOAD_BUNDLE_WAIT_SECONDS: '20' }
  const first = await run(t, scratch('one'), { ...settings, ...waits, CLUSTER_NODE: 'first' })
  const more = { UPLOAD_BUNDLE_WAIT_SECONDS: '1', CLUSTER_NODE: 'second' }
  const second = await run(t, scratch('two'), { ...settings, ...more })
  const items = [5, 6, 7].map(item)
  for (const { bytes } of items) await accepted(first, bytes)
  await suspend(first.process)
  await eventually('they are permanent', async () => {
    const states = await Promise.all(items.map(({ id }) => state(second, id)))
    return states.every((one) => one === 'FINALIZED') ? true : undefined
  })
  first.process.kill('SIGCONT')
  await eventually('it has noticed', () =>
    JSON.stringify(first.log).includes('were taken over by another one'),
  )
  // Longer than it takes to become permanent.
  await pause(15_000)
  const states = await Promise.all(items.map(({ id }) => state(first, id)))
  t.notOk(states.includes('FINALIZED'), states.join())
  await accepted(first, item(8).bytes)
  t.equal(await first.stop(), 0)
  t.equal(await second.stop(), 0)
})
