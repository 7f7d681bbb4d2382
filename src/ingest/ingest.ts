import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Address } from '../actor/mailbox-address.js'
import { Meters } from '../actor/meter.js'
import { meterTable } from '../actor/meter-table.js'
import { Following, Tip } from '../actor/shared.js'
import type { CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import { Generations } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { IndexedCatalog } from '../catalog/indexed.js'
import { openCatalogTables } from '../catalog/tables.js'
import { RemoteChain } from '../chain/remote-chain.js'
import type { Refusal } from '../format/refusal.js'
import { chainSources } from '../source/roots/chain-sources.js'
import type { Transactions } from '../source/roots/transaction-headers.js'
import { TxData } from '../source/roots/tx-data.js'
import type { SourceReply, SourceRequest } from '../source/source-messages.js'
import { BlobStore } from '../store/blobs.js'
import { type Environment, openEnvironment } from '../store/lmdb.js'
import { SegmentMarks, type SharedSegments } from '../store/segments/segment-marks.js'
import { SegmentReader } from '../store/segments/segment-reader.js'
import { SegmentParts } from '../store/segments/small-blobs.js'
import { Agenda } from './agenda.js'
import { Backfill, type BackfillParts } from './backfill.js'
import { bundleBytes } from './bundle-bytes.js'
import { bundleAgenda } from './bundle-tasks.js'
import { Intake } from './chain-intake.js'
import { Expiry } from './expiry.js'
import { Follower, type FollowerParts } from './follower.js'
import { IndexQueue, refusalWatch } from './index-queue.js'
import type { IngestReply, IngestRequest } from './ingest-messages.js'
import type { IngestParts } from './ingest-parts.js'
import { ItemJudge } from './item-judge.js'
import { KeptBundles } from './kept-bundles.js'
import { Mempool } from './mempool.js'
import { OpeningMarks } from './opening-marks.js'
import { Orders } from './orders.js'
import { ImportPace } from './pace.js'
import { Pruner } from './prune.js'
import { Repair } from './repair.js'
import { Supply } from './supply.js'
import { Unbundler } from './unbundler.js'
import { Webhooks } from './webhooks.js'

/** The threads that it talks to. */
export interface IngestLines {
  readonly keeper: Address<CatalogRequest, CatalogReply>
  /** Absent: no bundle is brought into the store. */
  readonly source?: Pick<Address<SourceRequest, SourceReply>, 'ask'>
}

/** One of the loops of the thread. */
interface Loop {
  run(): Promise<unknown>
  stop(): Promise<void>
}

/** Everything that makes the index grow, as one part that is started and stopped. */
export class Ingest {
  readonly #loops: readonly Loop[]
  readonly #abort = new AbortController()
  readonly #chain: RemoteChain
  readonly #catalog: IndexedCatalog
  /** What is indexed so far, for others on this thread. */
  readonly index: ChainIndex
  readonly #index: Environment
  #reader: SegmentReader | undefined
  readonly #agenda: Environment
  readonly #judge: ItemJudge
  readonly #orders: Orders

  constructor(
    given: IngestParts,
    { keeper, source }: IngestLines,
    clock: Clock,
    private readonly log: Log,
  ) {
    const generations = new Generations(given.generations)
    const meters = new Meters(meterTable, given.meters, given.row)
    const following = new Following(given.following)
    this.#index = openCatalogTables(given.catalogPath).environment
    const index = new ChainIndex(this.#index, generations)
    this.index = index
    this.#catalog = new IndexedCatalog(given.catalogPath, generations, index)
    this.#agenda = openEnvironment(given.agendaPath)
    this.#judge = new ItemJudge(given.proofThreads, log)
    this.#chain = new RemoteChain(given.chain, clock)
    const chain = this.#chain
    const queue = new IndexQueue(keeper, index, this.#abort.signal, refusalWatch(log, meters))
    const bundles = bundleAgenda(this.#agenda, given.tasksMax)
    const tasks = { agenda: bundles, marks: new OpeningMarks(this.#agenda, bundles) }
    const missing = new Agenda(this.#agenda, 'missing', given.tasksMax)
    const webhooks =
      given.webhooks && new Webhooks(given.webhooksPath, given.webhooks, { meters, clock, log })
    const intake = new Intake(bundles, missing, given.unbundle.unbundle, webhooks)
    const shared = { queue, following, meters, clock, log }

    const { transactions, chunks } = chainSources(chain, given.chunks, given.location)
    const open = bundleBytes({
      catalog: this.#catalog,
      store: new BlobStore(given.blobsPath, 0, this.#segments(given.segments, clock)),
      transactions,
      openRoot: chunks.openRoot,
      whole: new TxData(transactions, chain),
      ...(source === undefined ? {} : { kept: this.#kept(given, source, transactions) }),
    })
    const unbundler = new Unbundler(
      { ...shared, ...tasks, open, judge: this.#judge, webhooks },
      given.unbundle,
    )
    const wake = (): void => unbundler.wake()
    const arrival = { chain, queue, intake, meters, clock, log, onImported: wake }
    const repair = new Repair({ ...shared, chain, agenda: missing, intake, onRepaired: wake })
    this.#orders = new Orders({
      chain,
      queue,
      bundles,
      intake,
      clock,
      log,
      pruner: new Pruner(queue, given.follow.forkDepthMax, this.#abort.signal),
      wake,
    })
    this.#loops = [
      ...followers(arrival, given, following),
      repair,
      unbundler,
      new Expiry(queue, clock),
      ...(webhooks === undefined ? [] : [webhooks]),
      ...(given.mempool === undefined ? [] : [new Mempool({ chain, queue, log }, given.mempool)]),
    ]
  }

  /** Has bundles kept, as the operator wants it. */
  #kept(
    { keepFilter, cacheMaxBytes, segments }: IngestParts,
    source: Pick<Address<SourceRequest, SourceReply>, 'ask'>,
    transactions: Transactions,
  ): KeptBundles {
    const marks = segments && new SegmentMarks(segments.memory, segments.shape)
    return new KeptBundles({
      source,
      transactions,
      filter: keepFilter,
      maxBytes: cacheMaxBytes,
      usedBytes: () => this.#catalog.blobBytes() + (marks?.fileBytes ?? 0),
    })
  }

  /** Small payloads as this thread reads them. */
  #segments(shared: SharedSegments | undefined, clock: Clock): SegmentParts | undefined {
    if (shared === undefined) return undefined
    const { folder, memory, shape } = shared
    this.#reader = new SegmentReader(folder, new SegmentMarks(memory, shape), clock)
    return new SegmentParts(folder, this.#reader, this.#reader)
  }

  /** Carries out an operator's order. */
  handle(request: IngestRequest): IngestReply | Refusal | Promise<IngestReply | Refusal> {
    return this.#orders.handle(request)
  }

  /** Runs until `stop`; rejects where the catalog is lost. */
  async run(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => this.#whileReadable(loop)))
  }

  /** A loop that meets a damaged page of the index stands still until the next start: it would meet it again. */
  async #whileReadable(loop: Loop): Promise<void> {
    try {
      await loop.run()
    } catch (error) {
      if (!this.index.reportDamage(error)) throw error
      this.log.error({ err: error }, 'a page of the catalog is damaged: the index stands still')
    }
  }

  /** Ends without finishing work in progress: the next process takes it up again. */
  async stop(): Promise<void> {
    this.#abort.abort()
    this.#orders.stop()
    await Promise.all(this.#loops.map((loop) => loop.stop()))
    await Promise.all([this.#chain.close(), this.#judge.close()])
    await this.#reader?.close()
    await Promise.all([this.#agenda.close(), this.#catalog.close(), this.#index.close()])
  }
}

/** What brings blocks: at the top, in gaps, and below where the index began, if the operator wants to begin lower. */
function followers(
  parts: Omit<FollowerParts & BackfillParts, 'supply' | 'tip' | 'pace'> & { readonly chain: RemoteChain },
  given: IngestParts,
  following: Following,
): Loop[] {
  const { chain, meters, clock, log } = parts
  const { start } = given.follow
  const supply = (): Supply => new Supply(chain, given.blocksAhead, given.headersAtOnce)
  const pace = new ImportPace(following, meters, clock, log)
  const { tip: shared, blockNews, follow } = given
  const tip = new Tip(shared)
  const news = blockNews === undefined ? {} : { blockNews }
  const follower = new Follower({ ...parts, ...news, supply: supply(), tip, pace }, follow)
  const first = 'height' in start ? start.height : undefined
  return [follower, new Backfill({ ...parts, supply: supply() }, first)]
}
