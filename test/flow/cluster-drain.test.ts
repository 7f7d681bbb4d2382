/** A machine that is taken out of its cluster: nothing new comes, what it has accepted becomes permanent, and it says so. */
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { postgresAbsent, postgresFor } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { headerOf } from '../signed-item.js'
import { type Running, run, sluice } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 37))

function item(number: number): { readonly id: string; readonly bytes: Uint8Array } {
  const bytes = signItem(signer, {}, Buffer.alloc(20_000, `payload ${number} `))
  const header = headerOf(bytes)
  return { id: header.id, bytes }
}

async function sent({ urls }: Running, bytes: Uint8Array): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${urls.upload}/v1/tx`, { method: 'POST', body: bytes })
  return { status: answer.status, text: await answer.text() }
}

async function stateOf({ urls }: Running, id: string): Promise<unknown> {
  const answer = await fetch(`${urls.upload}/v1/tx/${id}/status`)
  return ((await answer.json()) as { readonly status?: string }).status
}

/** Statuses of the health answers that load balancers go by. */
async function healths({ urls }: Running): Promise<number[]> {
  const paths = [`${urls.upload}/healthcheck`, `${urls.upload}/health`, `${urls.gateway}/gateway/healthcheck`]
  return Promise.all(paths.map(async (path) => (await fetch(path)).status))
}

t.test('a machine is drained, and taken in again', postgresAbsent, async (t) => {
  const { url } = await postgresFor(t)
  const settings = {
    CLUSTER_DATABASE_URL: url,
    SERVICES: 'gateway,upload',
    DEVNET_BLOCK_MS: '500',
    UPLOAD_BUNDLE_WAIT_SECONDS: '3600',
    UPLOAD_FREE_ITEM_BYTES: '1000000',
  }
  const one = await run(t, scratch('one'), { ...settings, CLUSTER_NODE: 'one' })
  const two = await run(t, scratch('two'), { ...settings, CLUSTER_NODE: 'two' })
  const cluster = (...words: string[]): ReturnType<typeof sluice> => sluice(['cluster', ...words], settings)
  const items = [1, 2, 3].map(item)
  for (const { bytes } of items)
    await eventually('it is accepted', async () => (await sent(one, bytes)).status === 200)
  await eventually('it is well', async () => (await healths(one)).every((status) => status === 200))

  t.equal((await cluster('drain')).code, 2)
  t.equal((await cluster('status', 'one')).code, 2)
  t.equal((await cluster('drain', 'nobody')).code, 3)
  t.equal((await cluster('resume', 'one')).code, 3)
  const draining = cluster('drain', 'one', '--wait')
  await eventually('its health says so', async () => (await healths(one)).every((status) => status === 503))
  const early = item(4)
  t.equal((await sent(one, early.bytes)).status, 200, 'what is still sent here is taken')
  await eventually('then it takes no uploads', async () => (await sent(one, item(5).bytes)).status === 503)
  t.match(await sent(one, item(5).bytes), { status: 503, text: /being drained/ })
  t.equal((await fetch(`${one.urls.upload}/chunks/arweave/-1/-1`)).status, 503, 'also none in parts')
  t.equal((await fetch(`${one.urls.gateway}/raw/${items[0]?.id}`)).status, 200, 'it serves')
  t.equal((await sent(two, item(6).bytes)).status, 200, 'the other one takes them')
  t.ok((await healths(two)).every((status) => status === 200))
  const { code, out, err } = await draining
  t.equal(code, 0, err)
  t.match(out, /being drained: \d+ items wait/)
  t.match(out, /drained: it may be stopped/)
  for (const { id } of [...items, early]) t.equal(await stateOf(one, id), 'FINALIZED')
  t.match((await cluster('status')).out, /^one {2}there, drained: it may be stopped/m)
  t.match((await cluster('doctor')).out, /one is drained/)
  t.match(JSON.stringify(one.log), /this machine is drained/)

  t.equal((await cluster('resume', 'one')).code, 0)
  await eventually('it takes uploads', async () => (await sent(one, item(7).bytes)).status === 200)
  t.ok((await healths(one)).every((status) => status === 200))
  t.equal(await two.stop(), 0)
  t.match(await cluster('drain', 'two', '--wait'), { code: 4, err: /two was stopped before/ })
  const again = await run(t, scratch('two'), { ...settings, CLUSTER_NODE: 'two' })
  await eventually('it is out from its start', async () => (await sent(again, item(8).bytes)).status === 503)
})
