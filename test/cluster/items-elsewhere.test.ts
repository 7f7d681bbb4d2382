/** What one machine has accepted, free or paid, alone or in a bundle, no other machine charges again. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { migrateCluster } from '../../src/cluster/cluster-schema.js'
import type { ItemElsewhere, ItemsElsewhere, ReceiptFacts } from '../../src/cluster/items-elsewhere.js'
import { PostgresItems } from '../../src/cluster/postgres-items.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import { sha256 } from '../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { ListedCheck } from '../../src/upload/intake/listed-check.js'
import type { Receipt } from '../../src/upload/records/receipt.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import type { UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import { twoMachines } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { answered, type RigOptions, requestOf, type UploadRig, uploadRig } from '../upload/upload-rig.js'
import { salesByHand } from '../upload/usdc-sales.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
const itemOf = (text: string, bytes = 0): Buffer =>
  Buffer.from(signItem(signer, {}, Buffer.concat([Buffer.from(text), Buffer.alloc(bytes)])))
const idOf = (item: Uint8Array): Id => idOfBytes(sha256(item.subarray(2, 66)))
const bundleOf = (...items: readonly Uint8Array[]): Buffer =>
  Buffer.from(signItem(signer, { tags }, encodeBundle(items.map((bytes) => ({ id: idOf(bytes), bytes })))))

/** A machine where items below 1000 bytes are free from each range, once. */
async function machine(t: Test, machines: ItemsElsewhere, more: RigOptions = {}): Promise<UploadRig> {
  const environment = openUploadTables(scratch('machine'))
  t.teardown(() => environment.close())
  const free = { itemMaxBytes: 1000, walletBytes: 1e9, rangeBytes: 1000, exemptWallets: [] }
  return uploadRig(t, environment, { isRich: true, free, machines, ...more })
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

/** While a bundle is being paid for at one, the other charges nothing in it. */
async function sold(t: Test, first: ItemsElsewhere, second: ItemsElsewhere): Promise<void> {
  const sales = salesByHand(t)
  const [one, two] = [await machine(t, first, sales.options), await machine(t, second, sales.options)]
  const [unpaid, paid] = [itemOf('in an unpaid one', 2000), itemOf('in a paid one', 2000)]
  const others = Array.from({ length: 3000 }, (_, at) => itemOf(`${at}`, 1000))
  t.equal((await post(two, itemOf('makes it a home', 2000), home)).status, 200)
  const bought = await sales.buy(one, bundleOf(unpaid))
  const twice = await sales.buy(two, bundleOf(paid))
  const again = await sales.buy(one, bundleOf(...others, bundleOf(paid), itemOf('beside it')))
  for (const item of [unpaid, paid])
    for (const from of [home, away]) t.match(await post(two, item, from), { status: 503, text: /being paid/ })
  t.equal(two.questions.includes('settle'), true, 'only what made it a home')
  t.equal(two.questions.at(-1), 'withdraw')
  t.match(await post(one, paid, away), { status: 503 })
  sales.settle(0, false)
  t.equal((await bought.answer).status, 402)
  t.equal((await post(two, unpaid, away)).status, 200, 'it is free again')
  sales.settle(1, false)
  t.equal((await twice.answer).status, 402)
  t.match(await post(two, paid, away), { status: 503 }, 'the other sale goes on')
  sales.settle(2, true)
  t.equal((await again.answer).status, 200)
  t.equal((await post(two, paid, away)).status, 409)
  t.equal((await post(two, others[2999] ?? paid, away)).status, 409)
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
  const one = await machine(t, first)
  await judged(t, one, await machine(t, second))
  await listedAgain(t, one, first, second, sessions)
  await sold(t, first, second)
  t.strictSame(await sessions.ask('SELECT 1 FROM cluster_sales WHERE bundle IS NOT NULL'), [])
  while (await first.sweepSales());
  const left = await sessions.ask('SELECT 1 FROM cluster_sales NATURAL FULL JOIN cluster_sale_items')
  t.strictSame(left, [], 'nothing stays of sales that are over')
  await leases(t, first, second, sessions)
  const [taken, around] = [sha256(large.subarray(2, 66)), sha256(Buffer.from('of a stranger'))]
  const receipt = { receivedMs: 1, deadlineHeight: 2, winc: '3' }
  const before = await second.receiptOf(idOf(large))
  t.ok(await second.add([{ id: taken, bundle: around }]), 'lies in a bundle, which anybody can make')
  t.strictSame(await second.receiptOf(idOf(large)), before)
  t.strictSame([await first.has(idOf(large)), await second.has(idOf(large))], [false, true])
  const both = [
    { id: taken, bundle: taken, receipt },
    { id: taken, bundle: around },
  ]
  t.ok(await second.add(both), 'uploads that it took over')
  t.strictSame(await first.receiptOf(idOf(large)), receipt)
  t.strictSame(await second.receiptOf(idOf(large)), { ...receipt, isOwn: true })
  t.strictSame([await first.has(idOf(large)), await second.has(idOf(large))], [true, false])
  await Promise.all([first.close(), second.close(), sessions.close()])
  t.equal(await first.has(idOf(large)), undefined, 'a database that does not answer')
  t.equal(await first.add([]), false)
}).catch(t.threw)

/** What a database has lost that was restored from a backup is listed again, and nobody pays twice. */
async function listedAgain(
  t: Test,
  { uploads }: UploadRig,
  first: ItemsElsewhere,
  second: ItemsElsewhere,
  sessions: PostgresSessions,
): Promise<void> {
  const { signal: closing } = new AbortController()
  const check = new ListedCheck({ uploads, items: first, closing, logger: silentLog })
  const all = [large, free, bundle, inner, deep].map(idOf)
  const known = (): Promise<unknown[]> => Promise.all(all.map((id) => second.has(id)))
  await eventually('nothing waits', () => uploads.unlisted.some(10).length === 0)
  check.note(idOf(large))
  await check.look()
  t.strictSame(uploads.unlisted.some(10), [], 'nothing is missing')
  await sessions.ask('DELETE FROM cluster_items')
  t.strictSame(new Set(await known()), new Set([false]))
  // As after a start: the last one that was listed is on disk.
  await new ListedCheck({ uploads, items: first, closing, logger: silentLog }).look()
  await eventually('all is listed again', async () => (await known()).every((one) => one === true))
}

/** What a machine sells that has died counts until its time is over. */
async function leases(
  t: Test,
  first: ItemsElsewhere,
  second: ItemsElsewhere,
  sessions: PostgresSessions,
): Promise<void> {
  const [around, id] = [idOf(itemOf('around')), idOf(itemOf('on sale'))]
  const sale = await first.beginSale(around)
  t.equal(await first.beginSale(around), sale, 'the same one')
  t.ok(await first.addToSale(sale ?? '', [idBytes(id)]))
  t.strictSame([await first.has(id), await second.has(id)], [false, 'selling'])
  await sessions.ask("UPDATE cluster_sales SET until = now() - interval '1 s'")
  t.equal(await second.has(id), false)
  t.strictSame(await first.renewSales([around, id]), new Set([around]))
  t.equal(await second.has(id), 'selling')
  await sessions.ask("UPDATE cluster_sales SET until = now() - interval '1 hour'")
  t.ok(await second.sweepSales(), 'any machine removes it then')
  t.strictSame(await first.renewSales([around]), new Set())
  t.ok(await first.addToSale(sale ?? '', [idBytes(id)]), 'one that stood still adds nothing')
  t.equal(await second.sweepSales(), false)
  t.strictSame(await sessions.ask('SELECT 1 FROM cluster_sales NATURAL FULL JOIN cluster_sale_items'), [])
}

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
  const sales = new Map<string, Set<string>>()
  const mark = (store: number, around: Id): string => `${store} ${around}`
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
      const isSold = [...sales].some(([sale, ids]) => !sale.startsWith(`${store} `) && ids.has(id))
      return row !== undefined && row.store !== store ? true : isSold ? 'selling' : false
    },
    async beginSale(around) {
      if (state.isAway) return undefined
      const sale = mark(store, around)
      sales.set(sale, sales.get(sale) ?? new Set())
      return sale
    },
    async addToSale(sale, ids) {
      if (!state.isAway) for (const id of ids) sales.get(sale)?.add(text(id))
      return !state.isAway
    },
    renewSales: async (due) =>
      state.isAway ? undefined : new Set(due.filter((around) => sales.has(mark(store, around)))),
    sweepSales: async () => false,
    async endSales(due) {
      if (!state.isAway) for (const around of due) sales.delete(mark(store, around))
      return !state.isAway
    },
  })
  return { rows, sales, state, of }
}

t.test('two machines and a register', async (t) => {
  const { of } = register()
  await judged(t, await machine(t, of(1)), await machine(t, of(2)))
  await sold(t, of(1), of(2))
})

t.test('a bundle that the others cannot know of is not paid for', async (t) => {
  const { sales, state, of } = register()
  const byHand = salesByHand(t)
  const one = await machine(t, of(1), byHand.options)
  state.isAway = true
  t.match(await byHand.ordered(one, bundle), { status: 503, text: /No payment was moved/ })
  t.equal(byHand.orders(), 0)
  t.strictSame(one.uploads.scanned.behind(undefined, 10), [], 'nothing of it stays')
  state.isAway = false
  const { answer } = await byHand.buy(one, bundle)
  t.equal(sales.size, 1)
  byHand.settle(0, true)
  t.equal((await answer).status, 200)
  await eventually('its sale is over', () => sales.size === 0)
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
