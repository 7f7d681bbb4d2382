import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock, Timer } from '../../actor/clock.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { Attributes } from '../../catalog/attributes.js'
import type { Catalog } from '../../catalog/catalog-messages.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Writable } from '../../format/writable.js'
import type { Content } from '../../store/content.js'
import type { SegmentReader } from '../../store/segments/segment-reader.js'
import type { Packed } from '../keeping/manifest-cache.js'
import { stillUnknown } from '../refusals.js'
import type {
  ContentRequest,
  ManifestFrom,
  OpenMessage,
  SourceReply,
  SourceRequest,
} from '../source-messages.js'
import { GrowingContent } from './growing.js'
import type { ProgressReader } from './progress-table.js'

/** Content from a source, with what is known of it. `content` must be closed exactly once. */
export interface OpenedContent {
  readonly attributes: Attributes
  readonly content: Content
  /** Payload bytes that `content` can give, `end` exclusive (unlike in a `Window`): all of them, or the requested window. */
  readonly span: { readonly start: number; readonly end: number }
  /** Which source brings it, e.g. `trusted-gateways`; `cache` where it was in the store after all. */
  readonly source: string
  readonly trusted: boolean
  readonly hops?: number
  /** Names the same bytes to the fetcher, where they are a manifest, until `content` is read or closed. */
  readonly manifestFrom: ManifestFrom
}

type OpenedReply = Extract<SourceReply, { kind: 'opened' }>
type PlacedReply = Extract<SourceReply, { kind: 'placed' }>

/** Time until a full mailbox is tried again. */
const retryCloseMs = 50

/** Ids that are known to be absent; each takes some 200 bytes. */
const absentMax = 32_768

/** Longest time for which an absence is cached: another client's hints may have found the id meanwhile. */
const absentMaxMs = 10_000

interface Absent {
  readonly untilMs: number
  /** The generation in the catalog, before the request. */
  readonly generation: number
}

/**
 * On an edge thread: requests bytes that are not in the store from the source thread, and opens the growing file. It is what the
 * port `Transfers` of the gateway stands for (gateway/gateway-parts.ts).
 */
export class TransferClient {
  readonly #unclosed = new Set<number>()
  /** Absences that the fetcher has cached, so that a known absence costs no message. */
  readonly #absent = new BoundedMap<Id, Absent>(absentMax)
  #retry: Timer | undefined

  /**
   * `sourceThread`: its mailbox, whose progress events go to `progress.hear` (`src/threads/edge/edge-content.ts`).
   * Without `catalog` each absence is requested again. With `segments`, what lies in one is read there, without another message.
   */
  constructor(
    private readonly sourceThread: Address<SourceRequest, SourceReply>,
    private readonly progress: ProgressReader,
    private readonly clock: Clock,
    private readonly catalog?: Pick<Catalog, 'generation'>,
    private readonly segments?: Pick<SegmentReader, 'open'>,
  ) {}

  #absenceOf(id: Id): Refusal | undefined {
    const absent = this.#absent.get(id)
    if (absent === undefined) return undefined
    const leftMs = absent.untilMs - this.clock.monotonic()
    if (leftMs > 0 && absent.generation === this.catalog?.generation(id)) return stillUnknown(leftMs)
    this.#absent.delete(id)
    return undefined
  }

  /**
   * Resolves as soon as size and type are known; small payloads come whole and with a digest. Refusals: `unknown` only
   * where every source denies the id, else `upstream`, `late`, `forged`, `busy`, `unsatisfiable`. Never rejects.
   */
  async open(request: ContentRequest): Promise<OpenedContent | Refusal> {
    const { id, hints } = request
    // A request with a place is not answered from the cache of absences.
    const absent = hints.rootId === undefined ? this.#absenceOf(id) : undefined
    if (absent !== undefined) return absent
    // The generation is read first, so that the next request notices what becomes known during this one.
    const generation = this.catalog?.generation(id)
    const reply = await this.sourceThread.ask(openMessage(request, this.segments !== undefined))
    if (isRefusal(reply)) return reply
    if (reply.kind === 'refused') {
      const { refusal } = reply
      if (generation !== undefined && refusal.rememberedMs !== undefined)
        this.#absent.set(id, {
          untilMs: this.clock.monotonic() + Math.min(refusal.rememberedMs, absentMaxMs),
          generation,
        })
      return refusal
    }
    if (reply.kind === 'placed') return this.#placed(reply)
    if (reply.kind !== 'opened') throw new Error(`an open was answered with ${reply.kind}`)
    const { attributes, base, sizeBytes, source, trusted, hops, reader } = reply
    return {
      attributes,
      content: this.grow(reply),
      span: { start: base, end: base + sizeBytes },
      source,
      trusted,
      manifestFrom: { reader },
      ...(hops === undefined ? {} : { hops }),
    }
  }

  #placed({ attributes, digest, place, source, trusted, hops }: PlacedReply): OpenedContent | Refusal {
    let content: Content | undefined
    try {
      content = this.segments?.open(place, digest, true)
    } catch {
      // No descriptor or no memory is left: as where its segment went meanwhile.
    }
    if (content === undefined) return refuse('busy', 'self', 'the payload cannot be read now')
    const span = { start: 0, end: place.sizeBytes }
    const opened = { attributes, content, span, source, trusted, manifestFrom: { digest } }
    return hops === undefined ? opened : { ...opened, hops }
  }

  /** Is the blob on disk what its name says? A false one is already dropped when this resolves. */
  async check(id: Id, digest: Uint8Array): Promise<boolean | Refusal> {
    return this.#checked({ kind: 'check', id, digest })
  }

  /** Is the item what lies at its place in a bundle of the store? The catalog knows its digest when this resolves true. */
  async judgeItem(id: Id): Promise<boolean | Refusal> {
    return this.#checked({ kind: 'judge-item', id })
  }

  async #checked(request: SourceRequest): Promise<boolean | Refusal> {
    const reply = await this.sourceThread.ask(request)
    if (isRefusal(reply)) return reply
    if (reply.kind === 'refused') return reply.refusal
    if (reply.kind !== 'checked') throw new Error(`a check was answered with ${reply.kind}`)
    return reply.sound
  }

  /** The SHA-256 of a payload; it is brought whole where nobody here knows it. Never rejects. */
  async digestOf(id: Id): Promise<Uint8Array | Refusal> {
    const reply = await this.sourceThread.ask({ kind: 'digest', id })
    if (isRefusal(reply)) return reply
    if (reply.kind === 'refused') return reply.refusal
    if (reply.kind !== 'digest') throw new Error(`a question for a digest was answered with ${reply.kind}`)
    return reply.digest
  }

  /** The packed form of a manifest, made where there is none. Never rejects. */
  async manifest(from: ManifestFrom, again: boolean): Promise<Packed | Refusal> {
    const reply = await this.sourceThread.ask({ kind: 'manifest', from, again })
    if (isRefusal(reply)) return reply
    if (reply.kind === 'refused') return reply.refusal
    if (reply.kind !== 'packed') throw new Error(`a manifest was answered with ${reply.kind}`)
    return reply
  }

  /**
   * Content of a transfer that was opened; the fetcher hears when it is needed no more. It gives bytes of the file's window only,
   * which is all of the payload but where a window was requested. Never throws: a file that cannot be opened is a broken source.
   */
  grow(opened: OpenedReply): Content {
    const { attributes, base, sizeBytes, slot, path, offset, reader, isInMemory } = opened
    const bytes = { path, offset, base, fileBytes: sizeBytes, sizeBytes: attributes.size, slot }
    const file = isInMemory === true ? { ...bytes, isInMemory } : bytes
    const close = (): void => this.#close(reader)
    try {
      return new GrowingContent(file, this.progress, close)
    } catch {
      // No descriptor left, or no /proc: the reader sees a body that breaks at once.
      return {
        sizeBytes: attributes.size,
        read: () => undefined,
        ready: () => Promise.resolve(false),
        close,
      }
    }
  }

  /** A close must arrive, or a slot is lost: it is repeated while the mailbox is full. */
  #close(reader: number): void {
    if (this.sourceThread.tell({ kind: 'close', reader })) return
    this.#unclosed.add(reader)
    this.#retry ??= this.clock.after(retryCloseMs, () => this.#closeAgain())
  }

  #closeAgain(): void {
    this.#retry = undefined
    for (const reader of [...this.#unclosed]) {
      if (!this.sourceThread.tell({ kind: 'close', reader })) break
      this.#unclosed.delete(reader)
    }
    if (this.#unclosed.size > 0) this.#retry = this.clock.after(retryCloseMs, () => this.#closeAgain())
  }
}

/** Field by field: to spread one object into another costs V8 as much as the rest of this call. */
function openMessage(request: ContentRequest, readsSegments: boolean): OpenMessage {
  const { id, hints, provenance, window, named, absentAt, client } = request
  const message: Writable<OpenMessage> = { kind: 'open', id, hints, provenance }
  if (window !== undefined) message.window = window
  if (named !== undefined) message.named = named
  if (absentAt !== undefined) message.absentAt = absentAt
  if (client !== undefined) message.client = client
  if (readsSegments) message.readsSegments = true
  return message
}
