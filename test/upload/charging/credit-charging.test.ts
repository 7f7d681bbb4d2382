import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { createLog } from '../../../src/actor/log.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal, type Refusal, refuse } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { Accounts } from '../../../src/payment/books/accounts.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { LedgerCredits } from '../../../src/payment/books/credits.js'
import { Wallets } from '../../../src/payment/books/wallets.js'
import type { CheckOrder, CreditsPort } from '../../../src/payment/credits-port.js'
import { nativeAddress, normalizedAddress } from '../../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import type { Environment } from '../../../src/store/lmdb.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import type { ItemCharge } from '../../../src/upload/charging/charging.js'
import { CreditCharging } from '../../../src/upload/charging/credit-charging.js'
import { KnownPosters } from '../../../src/upload/charging/known-posters.js'
import { neverPosted } from '../../../src/upload/charging/network-posts.js'
import { RepostCheck } from '../../../src/upload/charging/repost-check.js'
import { Sales } from '../../../src/upload/charging/sales.js'
import { recordUnsettled } from '../../../src/upload/charging/unsettled-items.js'
import { openIntake } from '../../../src/upload/intake/open-intake.js'
import { readAnnouncement } from '../../../src/upload/news/read-announcement.js'
import { FreePools } from '../../../src/upload/records/free-pools.js'
import { type LoggedUpload, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { eventually } from '../../eventually.js'
import { HandClock } from '../../names/hand-clock.js'

const oldItems = (environment: Environment): RepostCheck =>
  new RepostCheck(neverPosted, new KnownPosters(environment), systemClock, { bundleOf: () => undefined })

const payload = Buffer.from('it costs a winc a byte')
const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, payload)
const parsed = parseItemHeader(item)
if (parsed === 'more' || isRefusal(parsed)) throw new Error('the item of this test is none')
const header = parsed
const uploader = { address: undefined, paidBy: [], token: undefined }
const log = createLog('silent', 'test')

interface Rig {
  readonly uploads: Uploads
  readonly logFolder: string
  /** A process of the upload service, as far as money goes. */
  start(isResumed?: boolean): { charging: CreditCharging; kill: () => void }
  /** What the signer may spend. */
  balance(): Promise<string>
}

/** A thousand winc, and a winc a byte. */
async function rig(
  t: Test,
  price: (bytes: number) => Promise<bigint> = async (bytes) => BigInt(bytes),
): Promise<Rig> {
  const folder = t.testdir()
  const ledger = new EmbeddedLedger({ path: join(folder, 'ledger'), clock: systemClock })
  const uploads = new Uploads(openUploadTables(join(folder, 'uploads')))
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, systemClock.now, systemClock.now)
  const accounts = new Accounts(ledger, wallets, approvals, systemClock.now)
  const credits = new LedgerCredits({ ledger, wallets, approvals, price })
  const address = nativeAddress(header.signatureType, header.owner)
  const facts = { reason: 'payment', reference: 'r', about: {} }
  await accounts.credit({ id: 'give', address, winc: 1000n, source: 'source:test', ...facts })
  const rules = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  const closing: AbortController[] = []
  t.teardown(async () => {
    for (const one of closing) one.abort()
    await uploads.environment.close()
    await ledger.close()
  })
  return {
    uploads,
    logFolder: join(folder, 'log'),
    start(isResumed = true) {
      const end = new AbortController()
      closing.push(end)
      const pools = new FreePools(uploads.environment, rules)
      const charging = new CreditCharging(
        pools,
        credits,
        uploads.environment,
        oldItems(uploads.environment),
        systemClock,
        end.signal,
      )
      if (isResumed) charging.refundAbandoned()
      return { charging, kill: () => end.abort() }
    },
    balance: async () => (await accounts.balance(address))?.winc ?? 'none',
  }
}

function isCharged(value: object): value is ItemCharge {
  return 'refund' in value
}

t.test('what was held back for an item that a kill kept out is given back at the next start', async (t) => {
  const { start, balance, uploads } = await rig(t)
  const first = start()
  const charge = await first.charging.charge(header, item.length, uploader)
  t.ok(isCharged(charge))
  t.equal(await balance(), String(1000 - item.length))
  first.kill()
  const { charging } = start()
  await eventually('the credits are back', async () => (await balance()) === '1000')
  await eventually('nothing is unsettled', async () => uploads.environment.table('unsettled').count() === 0)
  const again = await charging.charge(header, item.length, uploader)
  t.ok(isCharged(again), 'and it may come again')
})

t.test('nothing is given back before it is known what was accepted', async (t) => {
  const { start, balance, uploads } = await rig(t)
  const first = start()
  const charge = await first.charging.charge(header, item.length, uploader)
  if (!isCharged(charge)) throw new Error('it was not charged')
  first.kill()
  const { charging } = start(false)
  // A store brings the item back.
  uploads.environment.write(() => recordUnsettled(uploads.environment, header.id))
  charging.settle(header.id, charge)
  charging.refundAbandoned()
  await eventually('nothing is unsettled', async () => uploads.environment.table('unsettled').count() === 0)
  t.equal(await balance(), String(1000 - item.length), 'it is paid')
})

t.test('what is accepted is paid for, though a kill kept it out of the tables', async (t) => {
  const { start, balance, uploads, logFolder } = await rig(t)
  const first = start()
  const charge = await first.charging.charge(header, item.length, uploader)
  if (!isCharged(charge)) throw new Error('it was not charged')
  const before = await DurableLog.open(logFolder)
  const meta: LoggedUpload = {
    id: header.id,
    headerSize: header.headerSize,
    owner: normalizedAddress(header.owner),
    receivedMs: 1,
    deadlineHeight: 200,
    winc: charge.winc,
  }
  const draft = before.draft()
  await draft.write(item)
  const place = await draft.finish(
    createHash('sha256').update(item).digest(),
    Buffer.from(JSON.stringify(meta)),
  )
  t.notOk(isRefusal(place))
  first.kill()
  await before.close()
  const rules = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  const { itemLog: intake } = await openIntake(logFolder, {
    uploads,
    log,
    clock: systemClock,
    sales: new Sales(uploads.environment),
    pools: new FreePools(uploads.environment, rules),
  })
  t.teardown(() => intake.close())
  t.match(uploads.find(header.id), { winc: String(item.length) })
  start()
  await eventually('nothing is unsettled', async () => uploads.environment.table('unsettled').count() === 0)
  t.equal(await balance(), String(1000 - item.length))
})

t.test('what a kill kept out of the tables is counted as free, and can be announced', async (t) => {
  const { uploads, logFolder } = await rig(t)
  const before = await DurableLog.open(logFolder)
  const wallet = normalizedAddress(header.owner)
  const meta: LoggedUpload = {
    id: header.id,
    headerSize: header.headerSize,
    owner: wallet,
    receivedMs: 1,
    deadlineHeight: 200,
    winc: '0',
    free: { keys: [`w:${wallet}`], bytes: item.length },
    digest: createHash('sha256').update(payload).digest('base64url'),
  }
  const draft = before.draft()
  await draft.write(item)
  const whole = createHash('sha256').update(item).digest()
  t.notOk(isRefusal(await draft.finish(whole, Buffer.from(JSON.stringify(meta)))))
  await before.close()
  const rules = { itemMaxBytes: 1000, walletBytes: 1000, rangeBytes: 1000, exemptWallets: [] }
  const pools = new FreePools(uploads.environment, rules)
  const parts = { uploads, log, pools, clock: systemClock, sales: new Sales(uploads.environment) }
  const killed = new Error('killed')
  const onLost = (): void => {
    throw killed
  }
  await t.rejects(openIntake(logFolder, { ...parts, onLost }), killed)
  t.equal(uploads.find(header.id), undefined, 'all of it, or nothing')
  const lostIds: string[] = []
  const { itemLog: intake, lost } = await openIntake(logFolder, {
    ...parts,
    onLost: (ids) => lostIds.push(...ids),
  })
  t.strictSame(lostIds, [header.id])
  t.equal(pools.left(wallet), 1000 - item.length)
  const [found] = lost
  t.match(found, { id: header.id, winc: '0' })
  t.equal((uploads.find(header.id) as { free?: unknown }).free, undefined, 'the log alone says it')
  const announced = found === undefined ? undefined : readAnnouncement(logFolder, found)
  t.strictSame([announced?.header.id, announced?.sizeBytes], [header.id, item.length])
  await intake.close()
  const again = await openIntake(logFolder, parts)
  t.teardown(() => again.itemLog.close())
  t.strictSame(again.lost, [])
  t.equal(pools.left(wallet), 1000 - item.length, 'once')
})

t.test('who cannot pay leaves nothing behind', async (t) => {
  const { start, balance, uploads } = await rig(t)
  const answer = await start().charging.charge(header, 5000, uploader)
  t.match(answer, { status: 402 })
  t.equal(await balance(), '1000')
  t.equal(uploads.environment.table('unsettled').count(), 0)
})

t.test('wallets of the list have everything for nothing, others what the rules say', async (t) => {
  const { uploads } = await rig(t)
  const [listed, other] = ['L'.repeat(43), 'M'.repeat(43)]
  for (const itemMaxBytes of [1000, 0]) {
    const rules = { itemMaxBytes, walletBytes: 1000, rangeBytes: 1000, exemptWallets: [listed] }
    const pools = new FreePools(uploads.environment, rules)
    for (const bytes of [1, 10 * 2 ** 30])
      t.strictSame(
        pools.reserveHere({ wallet: listed, range: '192.0.2.1' }, bytes)?.keys,
        [],
        `${bytes} bytes`,
      )
    t.equal(pools.left(listed), null)
    t.equal(pools.reservable({ wallet: other, range: undefined }, 1001), undefined)
    t.equal(pools.left(other), itemMaxBytes)
  }
})

/** Timers of the service alone do not keep a process alive. */
function stayAlive(t: Test): void {
  const timer = setInterval(() => undefined, 50)
  t.teardown(() => clearInterval(timer))
}

t.test(
  'credits of an item that was refused because nobody knew its price in time are not held back',
  async (t) => {
    stayAlive(t)
    let tell: (winc: bigint) => void = () => undefined
    const answered = new Promise<bigint>((resolve) => {
      tell = resolve
    })
    const { start, balance, uploads } = await rig(t, () => answered)
    const { charging, kill } = start()
    const charged = await charging.charge(header, item.length, uploader)
    t.notOk(isCharged(charged), 'the payment service does not answer')
    tell(BigInt(item.length))
    // Word of it goes when the credits are given back.
    await eventually(
      'nothing is unsettled',
      () => [...uploads.environment.table('unsettled').from(undefined, 10)].length === 0,
    )
    t.equal(await balance(), '1000')
    kill()
  },
)

t.test('nor are those of a process that was killed meanwhile', async (t) => {
  stayAlive(t)
  const pending: ((winc: bigint) => void)[] = []
  const { start, balance, uploads } = await rig(t, () => new Promise((resolve) => void pending.push(resolve)))
  const first = start()
  void first.charging.charge(header, item.length, uploader)
  await eventually('an item waits for its charge', () => pending.length > 0)
  first.kill()
  const second = start()
  pending[0]?.(BigInt(item.length))
  await eventually(
    'nothing is unsettled',
    () => [...uploads.environment.table('unsettled').from(undefined, 10)].length === 0,
  )
  t.equal(await balance(), '1000')
  second.kill()
})

t.test('an item is read first where too many others have their credits checked', async (t) => {
  const { uploads } = await rig(t)
  const rules = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  const pools = new FreePools(uploads.environment, rules)
  const askers: unknown[] = []
  const foreseen = async (refusal: Refusal) => {
    const credits = {
      check: async ({ asker }: CheckOrder) => {
        askers.push(asker)
        return refusal
      },
    } as unknown as CreditsPort
    const end = new AbortController()
    t.teardown(() => end.abort())
    const { environment } = uploads
    const charging = new CreditCharging(
      pools,
      credits,
      environment,
      oldItems(environment),
      systemClock,
      end.signal,
    )
    return charging.foresee(header, 1_000_000, { ...uploader, address: '198.51.100.7' })
  }
  t.equal(await foreseen(refuse('busy', 'self', 'too many wait')), undefined)
  t.equal(await foreseen(refuse('late', 'self', 'it has waited for too long')), undefined)
  t.match(await foreseen(refuse('upstream', 'upstream', 'away')), { status: 503 })
  t.match(await foreseen(refuse('late', 'upstream', 'no answer')), { status: 503 })
  t.strictSame(askers, Array(4).fill('198.51.100.7'), 'the payment service knows whose turn it is')
})

t.test('a payment service that is slow is waited for, one that is gone is not', async (t) => {
  const { uploads } = await rig(t)
  const { environment } = uploads
  const clock = new HandClock()
  const answers: ((answer: { paid: true; winc: string }) => void)[] = []
  const credits = {
    reserve: () => new Promise((resolve) => answers.push(resolve)),
    withdraw: async () => undefined,
  } as unknown as CreditsPort
  const pools = new FreePools(environment, {
    itemMaxBytes: 0,
    walletBytes: 0,
    rangeBytes: 0,
    exemptWallets: [],
  })
  const end = new AbortController()
  t.teardown(() => end.abort())
  const charging = new CreditCharging(pools, credits, environment, oldItems(environment), clock, end.signal)
  const begun = async (): Promise<{ outcome?: unknown; answer: () => void }> => {
    const place = answers.length
    const state: { outcome?: unknown; answer: () => void } = {
      answer: () => answers[place]?.({ paid: true, winc: '22' }),
    }
    void charging.charge(header, payload.length, uploader).then((outcome) => {
      state.outcome = outcome
    })
    await eventually('it is reserved', () => answers.length > place)
    return state
  }
  const first = await begun()
  await clock.turn(1200)
  await eventually('503 within a second', () => first.outcome !== undefined)
  t.match(first.outcome, { status: 503 })
  first.answer()
  await clock.turn(1)
  const second = await begun()
  await clock.turn(1200)
  t.equal(second.outcome, undefined, 'the last answer took as long')
  second.answer()
  await eventually('it is charged', () => second.outcome !== undefined)
  t.match(second.outcome, { winc: '22' })
  const third = await begun()
  await clock.turn(5000)
  await eventually('503 after five seconds', () => third.outcome !== undefined)
  t.match(third.outcome, { status: 503 })
})
