import { join } from 'node:path'
import type { Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import type { HeldMemory } from '../../src/actor/held-memory.js'
import { silentLog } from '../../src/actor/log.js'
import { Clients } from '../../src/admission/clients.js'
import type { ItemsElsewhere } from '../../src/cluster/items-elsewhere.js'
import { isRefusal, refuse } from '../../src/format/refusal.js'
import type { BodySink, Request } from '../../src/http/exchange.js'
import { makePage } from '../../src/http/page.js'
import type { CreditsPort, UsdcOutcome, UsdcPort } from '../../src/payment/credits-port.js'
import { verifyItemMessage } from '../../src/proof/item-verifier.js'
import { ed25519Signer } from '../../src/proof/sign.js'
import type { Environment } from '../../src/store/lmdb.js'
import { DurableLog, durableLogDefaults } from '../../src/store/segments/durable-log.js'
import { openUploadEndpoints } from '../../src/threads/upload/upload-endpoints.js'
import { CreditCharging } from '../../src/upload/charging/credit-charging.js'
import { KnownPosters } from '../../src/upload/charging/known-posters.js'
import { neverPosted } from '../../src/upload/charging/network-posts.js'
import { OpenSales } from '../../src/upload/charging/open-sales.js'
import { RepostCheck } from '../../src/upload/charging/repost-check.js'
import { Sales } from '../../src/upload/charging/sales.js'
import { ServicePosts } from '../../src/upload/charging/service-posts.js'
import { BundleScan } from '../../src/upload/intake/bundle-scan.js'
import { FreeTurns } from '../../src/upload/intake/free-turns.js'
import { ItemIntake } from '../../src/upload/intake/item-intake.js'
import type { LateItems } from '../../src/upload/intake/late-items.js'
import { SharedItems } from '../../src/upload/intake/shared-items.js'
import type { ReceiptRank } from '../../src/upload/intake/signing.js'
import type { ItemStore } from '../../src/upload/intake/store-item.js'
import { ItemAnnouncer } from '../../src/upload/news/item-announcer.js'
import type { MultipartRecords } from '../../src/upload/parts/multipart-records.js'
import type { OpenUploads } from '../../src/upload/parts/open-uploads.js'
import type { PartRecords } from '../../src/upload/parts/part-records.js'
import type { PartStore } from '../../src/upload/parts/part-store.js'
import { FreePools, type FreeRules } from '../../src/upload/records/free-pools.js'
import { Uploads } from '../../src/upload/records/uploads.js'
import { diskAnswer, type UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import type { UploadRoute } from '../../src/upload/requests/upload-route.js'
import type { HeldRoom } from '../../src/upload/room/held-room.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

export interface UploadRig {
  readonly routes: readonly UploadRoute[]
  readonly uploads: Uploads
  readonly records: MultipartRecords
  readonly open: OpenUploads
  readonly pools: FreePools
  readonly partsRoom: HeldRoom
  readonly arriving: HeldRoom
  readonly memory: HeldMemory
  /** Questions to the payment service, by their names. */
  readonly questions: string[]
  readonly noting: BundleScan
  readonly intake: ItemIntake
}

export interface RigOptions {
  readonly free?: FreeRules
  /** Credits are enough for everything. Absent: for nothing. */
  readonly isRich?: boolean
  /** 1 GB where absent. */
  readonly itemMaxBytes?: number
  /** Normalized addresses. */
  readonly blockedOwners?: ReadonlySet<string>
  /** The answer to uploaders when the disk is full; absent: there is room. */
  readonly noRoomFor?: () => UploadAnswer | undefined
  /** Has accepted items, too. */
  readonly store?: ItemStore
  /** Signs receipts; absent: at once. */
  readonly sign?: (rank: ReceiptRank) => Promise<void>
  /** Threads that sign receipts, and requests that may be under way. Absent: free items need no turn. */
  readonly turns?: { readonly threads: number; readonly requestsMax: number }
  /** What the payment service answers to a look at a payment in USDC. */
  readonly look?: UsdcPort['look']
  /** What became of such a payment. Absent: what `pay` answered last; else it has failed. */
  readonly outcome?: UsdcPort['outcome']
  /** How it settles such a payment. */
  readonly pay?: UsdcPort['pay']
  /** How it spends what is reserved for an item. */
  readonly settle?: CreditsPort['settle']
  /** What the disk has for what arrives; absent: plenty. */
  readonly leftBytes?: () => number
  /** Uploads in parts that other machines have, too. */
  readonly shared?: { readonly records: PartRecords; readonly files: PartStore }
  /** Of parts that wait; 10 GB where absent. */
  readonly partsMaxBytes?: number
  /** Of the log and of parts. */
  readonly folder?: string
  /** What other machines have accepted; absent: there are none. */
  readonly machines?: ItemsElsewhere
  /** Items in one bundle at most; absent: as usual. */
  readonly insideMax?: number
  /** Memory of all requests; absent: plenty. */
  readonly memoryMaxBytes?: number
  /** Of uploads in parts; absent: the system's. */
  readonly partsClock?: Clock
  /** What was accepted before the start, and is not in the tables. */
  readonly late?: Pick<LateItems, 'refusal'>
}

const allFree: FreeRules = { itemMaxBytes: 107_520, walletBytes: 1e9, rangeBytes: 1e9, exemptWallets: [] }
export const unpaidWords = 'Insufficient balance'

/** The upload service with all its routes, in this process, over these tables; who pays and the chain's height are scripted. */
export async function uploadRig(
  t: Test,
  environment: Environment,
  {
    free = allFree,
    isRich = false,
    itemMaxBytes = 1e9,
    noRoomFor = () => undefined,
    blockedOwners = new Set(),
    store,
    sign = async () => undefined,
    turns,
    look,
    pay,
    outcome,
    settle,
    leftBytes = () => 1e12,
    shared,
    partsMaxBytes = 1e10,
    folder = scratch('uploads'),
    insideMax = 1_000_000,
    memoryMaxBytes = 1e9,
    machines,
    partsClock = systemClock,
    late = { refusal: undefined },
  }: RigOptions = {},
): Promise<UploadRig> {
  const closing = new AbortController()
  const questions: string[] = []
  const tell =
    <T>(word: string, value: T) =>
    async (): Promise<T> => {
      questions.push(word)
      return value
    }
  const credits = {
    price: tell('price', { winc: '5' }),
    check: tell('check', { isEnough: isRich, isUnknownWallet: false, winc: '5', balance: '0' }),
    reserve: tell(
      'reserve',
      isRich ? { paid: true, winc: '5' } : { paid: false, winc: '5', isUnknownWallet: false },
    ),
    settle: settle ?? tell('settle', { winc: '5' }),
    refund: tell('refund', { winc: '5' }),
    withdraw: tell('withdraw', { winc: '5' }),
    approve: tell('approve', refuse('busy', 'self', 'not here')),
    revoke: tell('revoke', []),
  } as CreditsPort
  let bought: UsdcOutcome = { paid: false, state: 'failed' }
  const paying: UsdcPort['pay'] | undefined =
    pay &&
    (async (order) => {
      const paid = await pay(order)
      if ('paid' in paid) bought = paid
      return paid
    })
  const usdc = {
    offer: tell('offer', { status: 402, json: {}, lines: '' }),
    look: look ?? tell('look', { status: 402, json: {}, lines: '' }),
    units: tell('units', { units: '1', network: 'base' }),
    outcome: async (sale: Parameters<UsdcPort['outcome']>[0]) => {
      const became = await (outcome ?? tell('outcome', bought))(sale)
      return 'paid' in became && became.paid && sale.isAccepting === true
        ? { ...became, isKept: true }
        : became
    },
    finish: tell('finish', { status: 'confirmed', winc: '5', refundWinc: '0' }),
    ...(paying === undefined ? {} : { pay: paying }),
  } as unknown as UsdcPort
  const uploads = new Uploads(environment)
  const pools = new FreePools(uploads.environment, free)
  const sales = new Sales(uploads.environment)
  const log = await DurableLog.open(join(folder, 'log'), durableLogDefaults, () => undefined)
  const signing = {
    receipt: async (_: Uint8Array, rank: ReceiptRank) => {
      await sign(rank)
      return new Uint8Array(512)
    },
    data: async () => new Uint8Array(512),
    isBehind: false,
  }
  const watching = { closing: closing.signal, clock: systemClock, logger: silentLog }
  const noting = new BundleScan({ uploads, sales, itemLog: log, insideMax, blockedOwners, ...watching })
  const listing = machines && new SharedItems({ uploads, sales, scan: noting, items: machines, ...watching })
  const posters = new KnownPosters(uploads.environment)
  const old = new RepostCheck(new ServicePosts(noting, machines, neverPosted), posters, systemClock, noting)
  const intake = new ItemIntake({
    uploads,
    ...watching,
    scan: noting,
    ...(listing === undefined ? {} : { listing }),
    height: () => 1,
    verdicts: { verdictNow: async (signed) => verifyItemMessage(signed, signed.message) },
    charging: new CreditCharging(pools, credits, uploads.environment, old, systemClock, closing.signal),
    announcer: new ItemAnnouncer(undefined, closing.signal),
    openSales: new OpenSales({ sales, clock: systemClock, logger: silentLog, itemLog: log, usdc }),
    signing,
    ...(store === undefined ? {} : { objectStore: store }),
    ...(turns === undefined ? {} : { freeTurns: new FreeTurns(pools, turns, systemClock) }),
    late,
    terms: { public: '', dataCaches: [], fastFinalityIndexes: [] },
  })
  const clients = new Clients(
    { trustedProxies: ['192.0.2.1'], exempt: [], ipv6PrefixBits: 64 },
    { low: 0, high: 0 },
  )
  const page = makePage('Uploads', '')
  const taking = openUploadEndpoints({
    uploads,
    pools,
    sales,
    intake,
    itemLog: log,
    late,
    credits,
    usdc,
    noRoomFor,
    ...(store === undefined ? {} : { storeRefusal: () => store.refusal }),
    disk: {
      get leftBytes() {
        return leftBytes()
      },
      expect: () => undefined,
    },
    itemMaxBytes,
    memoryMaxBytes,
    blockedOwners,
    partsFolder: join(folder, 'parts'),
    partsMaxBytes,
    ...(shared === undefined ? {} : { shared }),
    ...(machines === undefined ? {} : { machines }),
    secret: Buffer.alloc(32, 9),
    signer: ed25519Signer(Buffer.alloc(32, 9)),
    protocol: 'http',
    clients,
    height: () => 1,
    startedMs: 0,
    page,
    uploadPage: page,
    info: () => ({}),
    clock: partsClock,
    logger: silentLog,
  })
  t.teardown(async () => {
    closing.abort()
    await taking.open.close()
    await Promise.all([intake.stopped(), noting.stopped(), listing?.stopped()])
    await log.close()
  })
  noting.start()
  listing?.start()
  await eventually('the tables are read for old bundles', () => !noting.isBehind)
  // This machine alone has them.
  const records = taking.records as MultipartRecords
  return { ...taking, records, uploads, pools, questions, noting, intake }
}

/** A request whose body is here already, or comes as its pieces do. `from`: whose it is. */
export function requestOf(
  method: string,
  path: string,
  {
    headers = {},
    from = '198.51.100.7',
    query = '',
    pieces = [],
  }: {
    readonly headers?: Readonly<Record<string, string>>
    readonly from?: string
    readonly query?: string
    readonly pieces?: Iterable<Uint8Array>
  } = {},
): Request & { readonly taken: () => number } {
  let taken = 0
  const stream = (sink: BodySink) => {
    let isPaused = false
    let isOver = false
    const source = pieces[Symbol.iterator]()
    const run = (): void => {
      while (!isPaused && !isOver) {
        const step = source.next()
        if (step.done === true) {
          isOver = true
          sink.over(undefined)
        } else {
          taken += step.value.length
          sink.piece(step.value)
        }
      }
    }
    setImmediate(run)
    return {
      pause: () => {
        isPaused = true
      },
      resume: () => {
        isPaused = false
        setImmediate(run)
      },
    }
  }
  return {
    method,
    path,
    query,
    remoteAddress: from,
    header: (name) => headers[name],
    headersUnder: (start) => Object.entries(headers).filter(([name]) => name.startsWith(start)),
    body: async () => Buffer.concat([...pieces]),
    stream,
    taken: () => taken,
  }
}

/** What a route answers. `reply`: nobody hears interim answers. */
export async function answered(
  { routes }: Pick<UploadRig, 'routes'>,
  path: string,
  request: Request,
  words: Readonly<Record<string, string>> = {},
): Promise<UploadAnswer> {
  const route = routes.find(({ method = 'GET', path: one }) => method === request.method && one === path)
  if (route === undefined) throw new Error(`no route ${request.method} ${path}`)
  const act = async (): Promise<UploadAnswer> => route.answer(request, words, { inform: () => undefined })
  // As the service answers.
  const answer = await act().catch(diskAnswer)
  if (isRefusal(answer)) throw new Error('a refusal is no answer')
  return answer
}
