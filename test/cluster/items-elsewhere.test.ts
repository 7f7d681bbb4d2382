/** What one machine has accepted, free or paid, alone or in a bundle, no other machine charges again. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { migrateCluster } from '../../src/cluster/cluster-schema.js'
import type { ItemElsewhere, ItemsElsewhere, ReceiptFacts } from '../../src/cluster/items-elsewhere.js'
import { PostgresItems } from '../../src/cluster/postgres-items.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import { sha256 } from '../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import type { UploadAnswer } from '../../src/upload/calls/upload-answers.js'
import type { Receipt } from '../../src/upload/records/receipt.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { twoMachines } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { answered, requestOf, type UploadRig, uploadRig } from '../upload/upload-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
const itemOf = (text: string, bytes = 0): Buffer =>
  Buffer.from(signItem(signer, {}, Buffer.concat([Buffer.from(text), Buffer.alloc(bytes)])))
const idOf = (item: Uint8Array): Id => idOfBytes(sha256(item.subarray(2, 66)))
const bundleOf = (...items: readonly Uint8Array[]): Buffer =>
  Buffer.from(signItem(signer, { tags }, encodeBundle(items.map((bytes) => ({ id: idOf(bytes), bytes })))))

/** A machine where items below 1000 bytes are free from each range, once. */
async function machine(t: Test, machines: ItemsElsewhere): Promise<UploadRig> {
  const environment = openUploadTables(scratch('machine'))
  t.teardown(() => environment.close())
  const free = { itemMaxBytes: 1000, walletBytes: 1e9, rangeBytes: 1000, exemptWallets: [] }
  return uploadRig(t, environment, { isRich: true, free, machines })
}

function post(rig: UploadRig, item: Buffer, from: string): Promise<UploadAnswer> {
  const headers = { 'content-length': String(item.length) }
  return answered(rig, '/tx', requestOf('POST', '/tx', { headers, from, pieces: [item] }))
}

const [home, away] = ['198.51.100.7', '203.0.113.9']
const large = itemOf('paid', 2000)
const free = itemOf('free', 500)
const [inner, deep] = [itemOf('inner', 2000), itemOf('deep', 2000)]
const bundle = bundleOf(inner, bundleOf(deep, itemOf('beside')))

/** Posts everything at one, and then again at two, from where nothing is free any more. */
async function judged(t: Test, one: UploadRig, two: UploadRig): Promise<void> {
  t.equal((await post(one, free, home)).status, 200)
  t.equal(one.questions.includes('reserve'), false, 'it was free')
  for (const item of [large, bundle]) t.equal((await post(one, item, home)).status, 200)
  t.equal((await post(two, itemOf('uses up what is free', 700), away)).status, 200)
  for (const [name, item] of Object.entries({ free, large, bundle })) {
    const before = two.questions.length
    const first = await post(one, item, away)
    const second = await post(two, item, away)
    t.equal(second.status, 202, name)
    const {
      public: _,
      signature: __,
      dataCaches: ___,
      fastFinalityIndexes: ____,
      ...facts
    } = first.json as Receipt
    t.match(second.json, facts, 'the receipt of the machine that has it')
    t.equal(two.questions.length, before, 'nobody pays')
  }
  for (const [name, item] of Object.entries({ inner, deep })) {
    t.equal((await post(two, item, away)).status, 409, name)
    t.equal(two.questions.at(-1), 'withdraw', 'what was reserved is given back')
  }
  t.equal(two.questions.includes('settle'), false)
  t.equal((await post(two, itemOf('new', 2000), away)).status, 200)
  t.equal((await post(one, large, away)).status, 202, 'where it was accepted it has its receipt')
  t.equal((await post(one, inner, away)).status, 409)
}

twoMachines(async (t, { url }) => {
  const sessions = new PostgresSessions(url, 1, 10_000)
  await migrateCluster(sessions)
  const made = (): PostgresItems =>
    new PostgresItems({
      databaseUrl: url,
      store: randomUUID(),
      clock: systemClock,
      log: silentLog,
      patienceMs: 10_000,
    })
  const [first, second] = [made(), made()]
  await judged(t, await machine(t, first), await machine(t, second))
  const taken = sha256(large.subarray(2, 66))
  t.ok(
    await second.add([
      { id: taken, bundle: taken },
      { id: taken, bundle: taken },
    ]),
    'uploads that it took over',
  )
  t.strictSame([await first.has(idOf(large)), await second.has(idOf(large))], [true, false])
  await Promise.all([first.close(), second.close(), sessions.close()])
  t.equal(await first.has(idOf(large)), undefined, 'a database that does not answer')
  t.equal(await first.add([]), false)
}).catch(t.threw)

interface Row {
  readonly bundle: string
  readonly store: number
  readonly atMs: number
  readonly receipt?: ReceiptFacts
}

/** A register in memory. */
function register() {
  const rows = new Map<string, Row>()
  const state = { isAway: false }
  const text = (bytes: Uint8Array): string => idOfBytes(bytes)
  const of = (store: number): ItemsElsewhere => ({
    async add(items: readonly ItemElsewhere[]) {
      if (state.isAway) return false
      for (const { id, bundle: around, receipt } of items) {
        const named = receipt === undefined ? {} : { receipt }
        rows.set(text(id), {
          ...named,
          bundle: text(around),
          atMs: systemClock.now(),
          ...rows.get(text(id)),
          store,
        })
      }
      return true
    },
    async receiptOf(id) {
      if (state.isAway) return undefined
      const row = rows.get(id)
      return row === undefined || row.store === store ? 'none' : (row.receipt ?? 'none')
    },
    async has(id) {
      if (state.isAway) return undefined
      const row = rows.get(id)
      return row !== undefined && row.store !== store
    },
  })
  return { rows, state, of }
}

t.test('two machines and a register', async (t) => {
  const { of } = register()
  await judged(t, await machine(t, of(1)), await machine(t, of(2)))
})

t.test('a register that is away: strangers wait, and nothing is paid back', async (t) => {
  const { rows, state, of } = register()
  const [one, two] = [await machine(t, of(1)), await machine(t, of(2))]
  for (const rig of [one, two])
    t.equal((await post(rig, itemOf(`makes it a home ${rig === one}`, 2000), home)).status, 200)
  state.isAway = true
  t.equal((await post(one, bundle, home)).status, 200, 'accepted, and listed later')
  t.equal((await post(two, inner, away)).status, 503)
  t.equal((await post(two, inner, home)).status, 200, 'at home it is charged')
  // The other machine lists what it has charged before the bundle is listed.
  rows.set(idOf(inner), { bundle: idOf(inner), store: 2, atMs: systemClock.now() + 1000 })
  state.isAway = false
  await eventually('the bundle is listed', () => rows.has(idOf(bundle)) && rows.has(idOf(deep)))
  t.equal((await post(two, deep, away)).status, 409)
  await eventually('nothing waits', () => one.uploads.unlisted.some(10).length === 0)
  for (const rig of [one, two]) t.equal(rig.questions.includes('refund'), false)
})
