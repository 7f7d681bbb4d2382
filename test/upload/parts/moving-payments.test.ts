/** Uploads in parts whose payments are not decided: they stay no longer than money can follow, and few of each network. */

import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import type { Request } from '../../../src/http/exchange.js'
import type { UsdcOutcome } from '../../../src/payment/credits-port.js'
import type { PaidFacts, Purchase, Unsettled } from '../../../src/upload/charging/sales.js'
import type { MultipartRecord } from '../../../src/upload/parts/multipart-record.js'
import { MultipartRecords } from '../../../src/upload/parts/multipart-records.js'
import { PaidParts, type PaidPartsParts } from '../../../src/upload/parts/paid-parts.js'
import { openUploadTables } from '../../../src/upload/records/uploads.js'
import { jsonAnswer, type UploadAnswer } from '../../../src/upload/requests/upload-answers.js'
import { eventually } from '../../eventually.js'

const answer = jsonAnswer(503, {})
const busy: Unsettled = { answer, isOpen: true, isUnsent: true }
const pending: Unsettled = { answer, isOpen: true }
const made = { winc: '7', transaction: '0x1', payer: '0xa', network: 'base', lines: '' }

interface Scene {
  /** Begins an upload by a payment of this name. */
  create(payment: string, client?: string, signed?: string): Promise<UploadAnswer>
  /** Something was sent for each upload. */
  isUsed: boolean
  /** What is open. */
  open(): MultipartRecord[]
  collected: (id: string) => Promise<PaidFacts | Unsettled>
  outcome: UsdcOutcome
  aheadMs: number
}

function sceneOf(t: Test): Scene {
  const environment = openUploadTables(t.testdir())
  const records = new MultipartRecords(environment, systemClock)
  const ids = new Set<string>()
  const clock: Clock = {
    ...systemClock,
    now: () => scene.aheadMs,
    monotonic: () => systemClock.monotonic() + scene.aheadMs,
  }
  const usdcUploads = {
    readPayment: ({ path, header }: Request) => ({
      name: path,
      signed: header('x-payment'),
      order: { bytes: 100 },
    }),
    track: () => ({ end: () => undefined, countFor: () => true, expired: new Promise(() => undefined) }),
    look: async () => undefined,
    purchase: ({ signed }: { readonly signed: string }): Pick<Purchase, 'pay' | 'signed' | 'refuse'> => ({
      signed,
      pay: (id) => scene.collected(id),
      refuse: async () => jsonAnswer(402, {}),
    }),
  } as unknown as PaidPartsParts['usdcUploads']
  const paid = new PaidParts({
    usdcUploads,
    usdc: {
      outcome: async () => scene.outcome,
      finish: async () => ({ status: 'confirmed', winc: '0', refundWinc: '0' }),
    },
    credits: { refund: async () => ({ winc: '0' }) },
    records,
    uploads: { ofReservation: () => undefined },
    secret: Buffer.alloc(32),
    itemMaxBytes: 1e9,
    clock,
  })
  const begin = (
    terms: Pick<MultipartRecord, 'chunkBytes' | 'paid' | 'client'> & { readonly id?: string },
  ) => {
    const { id = '' } = terms
    const record: MultipartRecord = { ...terms, id, createdMs: 1, changedMs: 1, state: 'open' }
    records.put(record)
    ids.add(id)
    return record
  }
  const scene: Scene = {
    collected: async () => busy,
    outcome: { paid: false, state: 'unknown' },
    isUsed: false,
    aheadMs: 0,
    open: () => [...ids].flatMap((id) => records.find(id) ?? []),
    async create(payment, client, signed = 'signature') {
      const request = { path: payment, query: 'totalBytes=100', header: () => signed } as unknown as Request
      const drop = (id: string): void => records.remove([id])
      const created = await paid.create(request, {
        client,
        begin: (terms) => begin({ ...terms, ...(client === undefined ? {} : { client }) }),
        open: { drop, isUsed: async () => scene.isUsed, decided: () => undefined },
      })
      return created ?? jsonAnswer(404, {})
    },
  }
  t.teardown(async () => {
    await paid.close()
    await records.close()
    await environment.close()
  })
  return scene
}

t.test('that this service is busy keeps no upload', async (t) => {
  const scene = sceneOf(t)
  t.match(await scene.create('p'), { status: 503 })
  t.strictSame(scene.open(), [])
})

t.test('it decides nothing about a payment that may move', async (t) => {
  const scene = sceneOf(t)
  scene.collected = async () => pending
  await scene.create('p')
  scene.collected = async () => busy
  await scene.create('p')
  t.equal(scene.open().length, 1)
  scene.outcome = { paid: true, payment: 'p', units: '1', ...made } as UsdcOutcome
  t.ok(await eventually('it is paid for', () => scene.open()[0]?.paid?.facts !== undefined))
  t.match(await scene.create('p'), { status: 200 })
})

t.test('an offer is made only where nothing of an earlier order can move', async (t) => {
  const scene = sceneOf(t)
  const over: Unsettled = { answer: jsonAnswer(402, {}), isOpen: false }
  scene.collected = async () => over
  t.match(await scene.create('new'), { status: 402 }, 'the first order')
  for (const payment of ['p', 'q']) {
    scene.collected = async () => pending
    t.match(await scene.create(payment), { status: 503 })
    // Its validity has ended meanwhile.
    scene.collected = async () => over
    for (const state of ['open', 'unknown'] as const) {
      scene.outcome = { paid: false, state }
      t.match(await scene.create(payment), { status: 503 }, state)
    }
    const settled = { paid: true, payment, units: '1', ...made } as UsdcOutcome
    scene.outcome = payment === 'p' ? settled : { paid: false, state: 'failed' }
    t.match(await scene.create(payment), { status: payment === 'p' ? 200 : 402 })
  }
})

t.test('of an order that nobody knows of, too, when it cannot be on its way any more', async (t) => {
  const scene = sceneOf(t)
  const over: Unsettled = { answer: jsonAnswer(402, {}), isOpen: false }
  scene.collected = async () => pending
  t.match(await scene.create('p'), { status: 503 })
  for (const [aheadMs, collected, status] of [
    [50_000, busy, 503],
    [89_000, over, 503],
    // That a request was answered meanwhile puts nothing off.
    [91_000, over, 402],
  ] as const) {
    scene.aheadMs = aheadMs
    scene.collected = async () => collected
    t.match(await scene.create('p'), { status })
  }
})

t.test('nor while another request settles it', async (t) => {
  const scene = sceneOf(t)
  let settle = (_: PaidFacts): void => undefined
  scene.collected = () =>
    new Promise((resolve) => {
      settle = resolve
    })
  const first = scene.create('p')
  t.ok(await eventually('it is begun', () => scene.open().length === 1))
  const settleFirst = (): void => settle(made)
  await new Promise((resolve) => setTimeout(resolve, 200))
  const settling = settle
  scene.collected = async () => busy
  await scene.create('p')
  t.equal(scene.open().length, 1)
  t.equal(settle, settling)
  settleFirst()
  t.match(await first, { status: 200 })
})

t.test('a payment that nobody knows of after a while is not waited for', async (t) => {
  const scene = sceneOf(t)
  scene.collected = async () => pending
  await scene.create('p')
  scene.outcome = { paid: false, state: 'open' }
  scene.aheadMs = 100_000
  await new Promise((resolve) => setTimeout(resolve, 2500))
  t.equal(scene.open().length, 1, 'it is being settled')
  scene.outcome = { paid: false, state: 'unknown' }
  t.ok(await eventually('it is gone', () => scene.open().length === 0))
})

t.test('one network has few of them, and others begin', async (t) => {
  const scene = sceneOf(t)
  scene.collected = async () => pending
  // At the same time: each waits for the changes of some time, which are written down together.
  const statuses = (names: readonly string[], client: (at: number) => string): Promise<number[]> =>
    Promise.all(names.map(async (name, at) => (await scene.create(name, client(at))).status))
  const many = (count: number, name: string): string[] =>
    Array.from({ length: count }, (_, at) => `${name}${at}`)
  const ofOne = await statuses(many(40, 'p'), () => '198.51.100.1')
  t.strictSame([ofOne[31], ofOne[32], ofOne[39]], [503, 429, 429])
  await statuses(many(300, 'q'), (at) => `198.51.100.${at % 256}`)
  t.ok(scene.open().length <= 512)
  t.match(await scene.create('r', '203.0.113.1'), { status: 503 }, 'it is begun')
})

t.test('the id of an upload is given again to nobody but who may have lost it', async (t) => {
  const scene = sceneOf(t)
  scene.collected = async () => made
  const first = await scene.create('paid', 'here')
  t.equal(first.status, 200)
  t.strictSame((await scene.create('paid', 'here')).json, first.json, 'the answer was lost')
  const begun = { status: 409, json: { error: 'upload_begun' } }
  t.match(await scene.create('paid', 'here', 'made up'), begun, 'another signature: no id, and no offer')
  t.match(await scene.create('paid', 'elsewhere'), begun, 'another address, which may be of the same client')
  scene.isUsed = true
  t.match(await scene.create('paid', 'here'), begun)
  scene.isUsed = false
  scene.aheadMs = 11 * 60_000
  t.equal((await scene.create('paid', 'here')).status, 409, 'later')
})

t.test('while its payment moves it is given to no other signature', async (t) => {
  const scene = sceneOf(t)
  scene.collected = async () => pending
  t.equal((await scene.create('moving', 'here')).status, 503)
  scene.collected = async () => made
  t.equal((await scene.create('moving', 'here', 'made up')).status, 503)
  t.equal((await scene.create('moving', 'elsewhere')).status, 503)
  t.equal((await scene.create('moving', 'here')).status, 200)
})

t.test('an upload whose payment took long to be decided is named when it is', async (t) => {
  const scene = sceneOf(t)
  scene.collected = async () => pending
  t.match(await scene.create('slow', 'here'), { status: 503 })
  scene.aheadMs = 30 * 60_000
  scene.collected = async () => made
  for (const status of [200, 200]) t.match(await scene.create('slow', 'here'), { status })
  scene.aheadMs += 11 * 60_000
  t.match(await scene.create('slow', 'here'), { status: 409 })
})
