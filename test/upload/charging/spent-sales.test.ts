/** Between a settled payment and an accepted item: no time decides whether the payment is refunded, too. */
import t, { type Test } from 'tap'
import type { Clock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import type { UsdcPort } from '../../../src/payment/credits-port.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { noCharge } from '../../../src/upload/charging/charging.js'
import { OpenSales } from '../../../src/upload/charging/open-sales.js'
import type { Sale } from '../../../src/upload/charging/sales.js'
import { ItemAcceptance } from '../../../src/upload/intake/item-acceptance.js'
import { type AcceptedItem, openUploadTables } from '../../../src/upload/records/uploads.js'
import { eventually } from '../../eventually.js'
import { type RigOptions, type UploadRig, uploadRig } from '../upload-rig.js'
import { salesByHand } from '../usdc-sales.js'

const item = Buffer.from(signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('sold')))
const header = parseItemHeader(item)
if (header === 'more' || isRefusal(header)) throw new Error('the item of this test is none')
const { id } = header

async function bought(t: Test, options: RigOptions) {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const sales = salesByHand(t)
  const rig: UploadRig = await uploadRig(t, environment, { ...sales.options, ...options })
  const buy = async (number: number) => {
    const { answer } = await sales.buy(rig, item)
    sales.settle(number, true)
    return answer
  }
  return { rig, buy }
}

t.test('a payment is spent before its item is accepted', async (t) => {
  const known: boolean[] = []
  const { rig, buy } = await bought(t, {
    settle: async () => {
      known.push(rig.uploads.find(id) !== undefined)
      return { winc: '7' }
    },
  })
  t.match(await buy(0), { status: 200, json: { winc: '7' } })
  t.same(known, [false], 'once')
})

t.test('an item whose payment was refunded meanwhile is not accepted', async (t) => {
  const { rig, buy } = await bought(t, {
    settle: async () => ({ winc: '0' }),
    outcome: async () => ({ paid: false, state: 'other' }),
  })
  t.match(await buy(0), { status: 402 })
  t.equal(rig.uploads.find(id), undefined)
})

t.test('an item waits while nobody can tell whether its payment is spent', async (t) => {
  let isAway = true
  const { rig, buy } = await bought(t, {
    settle: async () => (isAway ? refuse('late', 'self', 'away') : { winc: '7' }),
  })
  t.match(await buy(0), { status: 503 })
  t.equal(rig.uploads.find(id), undefined)
  isAway = false
  t.match(await buy(1), { status: 200 })
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
  const settled: string[] = []
  const parts = {
    scan: { accepted: () => undefined },
    listing: { queue: () => undefined, list: () => listed },
    charging: { settle: (one: string) => settled.push(one) },
    announcer: { announce: async () => undefined },
    terms: { public: '', dataCaches: [], fastFinalityIndexes: [] },
    clock: hasty,
  }
  const signature = async () => new Uint8Array(512)
  const acceptance = new ItemAcceptance(parts as never, { write: () => rows }, { signature })
  const accepted = { id, receivedMs: 0, deadlineHeight: 1, winc: '7' } as AcceptedItem
  return {
    settled,
    answer: acceptance.accept(accepted, { ...noCharge, winc: '7' }, undefined, { done: undefined }),
  }
}

const never = new Promise<void>(() => undefined)

t.test('an accepted item is charged and has its receipt, however long it takes to be listed', async (t) => {
  const { answer, settled } = accepting(Promise.resolve(true), never)
  t.match(await answer, { status: 200, json: { id } })
  t.same(settled, [id])
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
  const selling = new OpenSales({ sales, log: {} as never, logger: silentLog, clock: hasty })
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
  const selling = new OpenSales({ sales, log: {} as never, logger: silentLog, clock: hasty })
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
    log: {} as never,
    usdc: { outcome },
    service: { name: 'two' },
    logger: silentLog,
    clock,
  })
  const sale: Sale = { payment: 'p', units: '1', bytes: 1, request: id, openedMs: 0, itemId: id }
  for (const service of [{ service: 'one' }, {}]) await selling.became({ ...sale, ...service }, true)
  t.same(names, ['one', 'two'])
})
