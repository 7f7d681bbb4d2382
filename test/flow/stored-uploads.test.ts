/** Programs that share a bucket of a real S3 service: what one has accepted outlives its disk, and others serve it at once. */
import { rmSync } from 'node:fs'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { bucketAt, type Radosgw, radosgwAbsent, startRadosgw, storeSettings } from '../engines/radosgw.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { headerOf } from '../signed-item.js'
import { suspend } from '../suspend.js'
import { type Running, run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 33))

let starting: Promise<Radosgw> | undefined
/** One server for all tests: each of them has a bucket of its own. */
const radosgw = (): Promise<Radosgw> => {
  starting ??= startRadosgw()
  return starting
}
t.teardown(async () => (await starting)?.stop())

function storeAt(radosgw: Radosgw, bucket: string): Record<string, string> {
  return {
    SERVICES: 'gateway,upload',
    ...storeSettings(radosgw, bucket),
    UPLOAD_FREE_ITEM_BYTES: '40000000',
    UPLOAD_FREE_WALLET_BYTES: '1000000000',
    UPLOAD_FREE_RANGE_BYTES: '1000000000',
    DEVNET_BLOCK_MS: '500',
    // Nothing is bundled by itself.
    UPLOAD_BUNDLE_WAIT_SECONDS: '3600',
  }
}

interface Signed {
  readonly id: string
  readonly bytes: Buffer
  readonly payload: Buffer
}

let count = 0

function item(sizeBytes: number): Signed {
  count += 1
  const payload = Buffer.alloc(sizeBytes, `payload ${count} `)
  const bytes = Buffer.from(signItem(signer, {}, payload))
  const header = headerOf(bytes)
  return { id: header.id, bytes, payload }
}

interface Posted {
  readonly status: number
  readonly text: string
}

async function posted({ urls }: Running, { bytes }: Signed): Promise<Posted> {
  const answer = await fetch(`${urls.upload}/v1/tx`, { method: 'POST', body: bytes })
  return { status: answer.status, text: await answer.text() }
}

/** Its receipt: what comes before the store is open is refused. */
async function accepted(running: Running, signed: Signed): Promise<Record<string, unknown>> {
  const answer = await eventually('it is accepted', async () => {
    const one = await posted(running, signed)
    return one.status !== 503 && one
  })
  if (answer.status > 202) throw new Error(`${answer.status}: ${answer.text}`)
  return JSON.parse(answer.text) as Record<string, unknown>
}

async function isServed({ urls }: Running, { id, payload }: Signed): Promise<boolean> {
  const answer = await fetch(`${urls.gateway}/raw/${id}`)
  const bytes = Buffer.from(await answer.arrayBuffer())
  return answer.status === 200 && bytes.equals(payload)
}

async function metric({ urls }: Running, name: string): Promise<number> {
  const text = await (await fetch(`${urls.upload}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(name))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

t.test('accepted uploads outlive the disk of their machine', radosgwAbsent, async (t) => {
  const server = await radosgw()
  const settings = storeAt(server, await bucketAt(server))
  const [one, two] = [scratch('one'), scratch('two')]
  let first = await run(t, one, { ...settings, CLUSTER_NODE: 'first' })
  const second = await run(t, two, { ...settings, CLUSTER_NODE: 'second' })
  const items = [item(2000), item(150_000), item(1_500_000), item(18_000_000)]
  const receipts: Record<string, unknown>[] = []
  for (const one of items) {
    receipts.push(await accepted(first, one))
    t.ok(await isServed(second, one), `${one.payload.length} bytes are served by the neighbour at once`)
  }

  await t.test('a machine with an empty disk takes them up', async (t) => {
    await first.kill()
    rmSync(one, { recursive: true })
    first = await run(t, one, { ...settings, CLUSTER_NODE: 'first', UPLOAD_BUNDLE_WAIT_SECONDS: '1' })
    for (const [at, signed] of items.entries()) {
      const { id, timestamp, deadlineHeight, signature, winc } = receipts[at] ?? {}
      const same = { id, timestamp, deadlineHeight, signature, winc }
      t.match(await accepted(first, signed), same, 'the same receipt')
      t.ok(await isServed(first, signed))
    }
    await eventually('they are permanent', async () => {
      const states = await Promise.all(
        items.map(async ({ id }) => {
          const answer = await fetch(`${first.urls.upload}/v1/tx/${id}/status`)
          return ((await answer.json()) as { status?: string }).status
        }),
      )
      return states.every((state) => state === 'FINALIZED' || state === 'permanent')
    })
    await first.stop()
  })

  await t.test('where the store takes nothing there is no receipt, and a reason', async (t) => {
    await suspend(server.gateway)
    const signed = item(3000)
    const { status, text } = await posted(second, signed)
    t.equal(status, 503)
    t.match(text, /object store/)
    const failed = await metric(second, 'upload_stored_items_total{outcome="failed"')
    t.equal(failed, 1)
    t.notOk(await isServed(second, signed), 'it does not count')
    server.gateway.kill('SIGCONT')
    await accepted(second, signed)
    t.ok(await isServed(second, signed))
  })
})

/** Uploads until the program is gone. What has a receipt comes into `receipts`. */
async function uploadUntilGone(running: Running, receipts: Signed[]): Promise<void> {
  let isGone = false
  const uploader = async (): Promise<void> => {
    while (!isGone) {
      const signed = item(500 + receipts.length)
      try {
        if ((await posted(running, signed)).status === 200) receipts.push(signed)
      } catch (error) {
        if (!(error instanceof TypeError)) throw error
        isGone = true
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, uploader))
}

t.test('every receipt outlives a kill at any moment, with the disk', radosgwAbsent, async (t) => {
  const server = await radosgw()
  const settings = { ...storeAt(server, await bucketAt(server)), CLUSTER_NODE: 'only' }
  const folder = scratch('killed')
  const all: Signed[] = []
  for (let round = 0; round < 2; round += 1) {
    const program = await run(t, folder, settings)
    await accepted(program, item(100))
    const receipts: Signed[] = []
    const uploading = uploadUntilGone(program, receipts)
    await eventually('there are receipts', () => receipts.length > 3)
    await pause(300 * random())
    await program.kill()
    await uploading
    all.push(...receipts)
    rmSync(folder, { recursive: true })
  }
  const last = await run(t, folder, settings)
  await accepted(last, item(100))
  t.ok(all.length > 6, `${all.length} receipts`)
  for (const signed of all) if (!(await isServed(last, signed))) t.fail(`${signed.id} is lost`)
})

t.test('credentials that are wrong are said', radosgwAbsent, async (t) => {
  const server = await radosgw()
  const settings = storeAt(server, await bucketAt(server))
  const program = await run(t, scratch('wrong'), { ...settings, AWS_SECRET_ACCESS_KEY: 'wrong' })
  const answer = await eventually('the reason', async () => {
    const one = await posted(program, item(1000))
    return /SignatureDoesNotMatch|credentials/.test(one.text) && one
  })
  t.equal(answer.status, 503)
  t.notMatch(answer.text, /wrong/)
})
