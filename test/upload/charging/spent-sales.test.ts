/** Between a settled payment and an accepted item: no time decides whether the payment is refunded, too. */
import t, { type Test } from 'tap'
import type { Clock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal, type Refusal, refuse } from '../../../src/format/refusal.js'
import type { UsdcOutcome, UsdcPort } from '../../../src/payment/credits-port.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { noCharge } from '../../../src/upload/charging/charging.js'
import { OpenSales } from '../../../src/upload/charging/open-sales.js'
import { type Sale, Sales } from '../../../src/upload/charging/sales.js'
import { ItemAcceptance } from '../../../src/upload/intake/item-acceptance.js'
import type { ItemStore } from '../../../src/upload/intake/store-item.js'
import { type AcceptedItem, openUploadTables } from '../../../src/upload/records/uploads.js'
import { eventually } from '../../eventually.js'
import { failingDisk } from '../failing-disk.js'
import { answered, type RigOptions, requestOf, type UploadRig, uploadRig } from '../upload-rig.js'
import { salesByHand } from '../usdc-sales.js'

const item = Buffer.from(signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('sold')))
const header = parseItemHeader(item)
if (header === 'more' || isRefusal(header)) throw new Error('the item of this test is none')
const { id } = header

const made = { payment: 'p', transaction: '0x1', payer: '0xa', network: 'base', lines: '' }
const paid: UsdcOutcome = { ...made, paid: true, winc: '7' }

async function bought(t: Test, options: RigOptions) {
  const sound = openUploadTables(t.testdir())
  t.teardown(() => sound.close())
  const disk = failingDisk(sound)
  const sales = salesByHand(t)
  const rig: UploadRig = await uploadRig(t, disk.environment, { ...sales.options, ...options })
  const buy = async (number: number) => {
    const { answer } = await sales.buy(rig, item)
    sales.settle(number, true)
    return answer
  }
  return { rig, buy, disk, sales }
}

t.test('a payment is kept for its item, which is accepted then, and spent when it is accepted', async (t) => {
  const known: [string, boolean][] = []
  const { rig, buy } = await bought(t, {
    outcome: async ({ isAccepting }) => {
      known.push([isAccepting === true ? 'kept' : 'looked up', rig.uploads.find(id) !== undefined])
      return paid
    },
    settle: async () => {
      known.push(['spent', rig.uploads.find(id) !== undefined])
      return { winc: '7' }
    },
  })
  t.match(await buy(0), { status: 200, json: { winc: '7' } })
  await eventually('it is spent', () => known.length === 2)
  t.strictSame(known, [
    ['kept', false],
    ['spent', true],
  ])
})

t.test('an item whose payment was refunded meanwhile is not accepted', async (t) => {
  const { rig, buy } = await bought(t, { outcome: async () => ({ paid: false, state: 'other' }) })
  t.match(await buy(0), { status: 402 })
  t.equal(rig.uploads.find(id), undefined)
  t.notOk(rig.questions.includes('settle'), 'nothing is missing, because nothing was accepted')
})

t.test('an item waits while nobody can tell whether its payment is there', async (t) => {
  let isAway = true
  const { rig, buy, sales } = await bought(t, {
    outcome: async () => (isAway ? refuse('late', 'self', 'away') : paid),
  })
  t.match(await buy(0), { status: 503 })
  t.equal(rig.uploads.find(id), undefined)
  isAway = false
  t.match(await sales.ordered(rig, item), { status: 200 })
  t.equal(sales.orders(), 1, 'by the payment that was there')
})

t.test('while the tables take no changes, no money moves', async (t) => {
  const { rig, disk, buy, sales } = await bought(t, { isRich: true })
  disk.isFull = true
  const earlier = signItem(ed25519Signer(Buffer.alloc(32, 8)), {}, Buffer.from('not sold'))
  const headers = { 'content-length': String(earlier.length) }
  const first = answered(rig, '/tx', requestOf('POST', '/tx', { headers, pieces: [earlier] }))
  await eventually('a transaction was undone', () => disk.undone > 0)
  t.match(await sales.ordered(rig, item), { status: 503 })
  t.equal(sales.orders(), 0)
  disk.isFull = false
  t.match(await first, { status: 200 })
  await eventually('the tables take changes again', () => rig.uploads.pending.count === 0)
  t.match(await buy(0), { status: 200 })
})

t.test('a machine that comes back leaves its open sales to who has taken them over', async (t) => {
  const store: { refusal: Refusal | undefined; put: ItemStore['put']; holds: ItemStore['holds'] } = {
    refusal: undefined,
    put: async () => 'group-one',
    holds: async () => true,
  }
  let isAway = true
  const looked: string[] = []
  const { rig, buy } = await bought(t, {
    store,
    outcome: async ({ itemId }) => {
      looked.push(itemId)
      return isAway ? refuse('late', 'self', 'away') : paid
    },
  })
  t.match(await buy(0), { status: 503 })
  const sales = new Sales(rig.uploads.environment)
  const [open] = sales.open()
  if (open === undefined) throw new Error('no sale is open')
  isAway = false
  // While it is not known whose the uploads are, nothing is accepted.
  store.refusal = refuse('busy', 'self', 'is being opened')
  looked.length = 0
  t.match(await rig.intake.resumeIdle(open), { status: 503 })
  t.strictSame(looked, [])
  await rig.intake.leaveSales((group) => group === 'group-two')
  t.equal(sales.open().length, 1)
  await rig.intake.leaveSales((group) => group === 'group-one')
  store.refusal = undefined
  t.strictSame(sales.open(), [])
  t.match(await rig.intake.resumeIdle(open), { status: 404 })
  t.equal(rig.uploads.find(id), undefined)
  t.strictSame([...rig.uploads.stored.ids('group-one')], [])
})

t.test('a machine that stood still accepts nothing that another one may have taken over', async (t) => {
  let isOurs = false
  const store: ItemStore = {
    refusal: undefined,
    put: async () => 'group-one',
    holds: async (group) => isOurs && group === 'group-one',
  }
  let kept = 0
  const { rig, sales } = await bought(t, {
    store,
    outcome: async ({ isAccepting }) => {
      if (isAccepting === true) kept += 1
      return paid
    },
  })
  t.match(await sales.ordered(rig, item), { status: 503 })
  t.equal(sales.orders(), 0, 'no money moves')
  isOurs = true
  const { answer } = await sales.buy(rig, item, 1)
  isOurs = false
  sales.settle(0, true)
  t.match(await answer, { status: 503 })
  t.equal(rig.uploads.find(id), undefined, 'what another one may have found unpaid has no receipt')
  const [open] = new Sales(rig.uploads.environment).open()
  const before = kept
  for (let again = 0; again < 3; again += 1)
    t.match(open && (await rig.intake.resumeIdle(open)), { status: 503 })
  t.equal(kept, before, 'nor does the payment stay kept for it')
  isOurs = true
  t.match(open && (await rig.intake.resumeIdle(open)), { status: 200 })
})

/** A clock whose timers end as soon as they can. */
const hasty: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after: (_, act) => {
    const timer = setImmediate(act)
    return { cancel: () => clearImmediate(timer) }
  },
  every: () => ({ cancel: () => undefined }),
}

/** Accepts one item; `rows` resolves when it is in the tables, `listed` when other machines know of it. */
function accepting(rows: Promise<boolean>, listed: Promise<void>) {
  const [settled, logged]: [string[], string[]] = [[], []]
  const parts = {
    scan: { accepted: () => undefined },
    listing: { queue: () => undefined, list: () => listed },
    charging: { settle: (one: string) => settled.push(one) },
    announcer: { announce: async () => undefined },
    terms: { public: '', dataCaches: [], fastFinalityIndexes: [] },
    clock: hasty,
    logger: { error: (_: object, words: string) => logged.push(words) },
  }
  const signature = async () => new Uint8Array(512)
  const acceptance = new ItemAcceptance(
    parts as never,
    { write: () => rows, refusal: () => undefined },
    { signature },
  )
  const accepted = { id, receivedMs: 0, deadlineHeight: 1, winc: '7' } as AcceptedItem
  return {
    settled,
    logged,
    answer: acceptance.accept(accepted, { ...noCharge, winc: '7' }, undefined, { answerFields: undefined }),
  }
}

const never = new Promise<void>(() => undefined)

t.test('an accepted item is charged and has its receipt, however long it takes to be listed', async (t) => {
  const { answer, settled } = accepting(Promise.resolve(true), never)
  t.match(await answer, { status: 200, json: { id } })
  t.same(settled, [id])
})

t.test('an accepted item has its receipt and is charged, whatever fails then', async (t) => {
  const { answer, settled, logged } = accepting(Promise.resolve(true), Promise.reject(new Error('a bug')))
  t.match(await answer, { status: 200, json: { id } })
  t.same(settled, [id])
  t.match(logged, [/could not be listed/])
})

t.test('an item whose row is written late is charged then', async (t) => {
  let write = (_: boolean): void => undefined
  const rows = new Promise<boolean>((resolve) => {
    write = resolve
  })
  const { answer, settled } = accepting(rows, never)
  t.match(await answer, { status: 503 })
  t.same(settled, [])
  write(true)
  await eventually('it is charged', () => settled.length === 1)
})

t.test('a sale that takes long keeps no other one waiting', async (t) => {
  const sale = (payment: string): Sale => ({
    payment,
    units: '1',
    bytes: 1,
    request: id,
    openedMs: 0,
    itemId: id,
  })
  const open = ['slow', 'quick'].map(sale)
  const sales = { open: () => open } as never
  const selling = new OpenSales({ sales, itemLog: {} as never, logger: silentLog, clock: hasty })
  const closing = new AbortController()
  const resumed: string[] = []
  let end = (): void => undefined
  const over = selling.drive(async ({ payment }) => {
    resumed.push(payment)
    if (payment === 'slow')
      await new Promise<void>((resolve) => {
        end = resolve
      })
    return undefined
  }, closing.signal)
  await eventually('both are driven', () => resumed.length === 2)
  closing.abort()
  end()
  await over
  t.same(resumed, ['slow', 'quick'])
})

t.test('sales that stay open keep no others from their turns', async (t) => {
  const all = Array.from({ length: 40 }, (_, at) => String(at))
  const open = all.map((payment) => ({ payment, units: '1', bytes: 1, request: id, openedMs: 0, itemId: id }))
  const sales = { open: () => open } as never
  const selling = new OpenSales({ sales, itemLog: {} as never, logger: silentLog, clock: hasty })
  const closing = new AbortController()
  const resumed = new Set<string>()
  const over = selling.drive(async ({ payment }) => {
    resumed.add(payment)
    return undefined
  }, closing.signal)
  await eventually('all are driven', () => resumed.size === all.length)
  closing.abort()
  await over
  t.equal(resumed.size, all.length)
})

t.test('who takes over a sale continues it in the name of the service that began it', async (t) => {
  const names: unknown[] = []
  const outcome: UsdcPort['outcome'] = async ({ service }) => {
    names.push(service)
    return { paid: false, state: 'open' }
  }
  const clock = { ...hasty, now: () => 1e9 }
  const selling = new OpenSales({
    sales: {} as never,
    itemLog: {} as never,
    usdc: { outcome },
    service: { name: 'two' },
    logger: silentLog,
    clock,
  })
  const sale: Sale = { payment: 'p', units: '1', bytes: 1, request: id, openedMs: 0, itemId: id }
  for (const service of [{ service: 'one' }, {}]) await selling.became({ ...sale, ...service }, true)
  t.same(names, ['one', 'two'])
})

t.test('what was kept is too late by either clock', async (t) => {
  const times = { now: 1e9, monotonic: 5 }
  const clock: Clock = { ...hasty, now: () => times.now, monotonic: () => times.monotonic }
  const sale: Sale = { payment: 'p', units: '1', bytes: 1, request: id, openedMs: 0, itemId: id }
  const selling = new OpenSales({
    sales: { isOpen: () => true } as never,
    itemLog: {} as never,
    usdc: { outcome: async () => ({ ...paid, isKept: true }) },
    logger: silentLog,
    clock,
  })
  const longMs = 130_000
  for (const [words, passed] of [
    ['both', { now: longMs, monotonic: longMs }],
    ['a machine that was suspended: its monotonic clock stood', { now: longMs, monotonic: 1 }],
    ['a time of day that was set back', { now: -longMs, monotonic: longMs }],
  ] as const) {
    const kept = await selling.keep(sale)
    if ('answer' in kept) throw new Error('it is not kept')
    t.equal(kept.isTooLate(), false)
    times.now += passed.now
    times.monotonic += passed.monotonic
    t.equal(kept.isTooLate(), true, words)
  }
})

t.test('an item waits while its payment service is of a version that keeps no payment', async (t) => {
  const sale: Sale = { payment: 'p', units: '1', bytes: 1, request: id, openedMs: 0, itemId: id }
  const selling = new OpenSales({
    sales: {} as never,
    itemLog: {} as never,
    usdc: { outcome: async () => paid },
    logger: silentLog,
    clock: hasty,
  })
  t.match(await selling.keep(sale), { isOpen: true })
})
