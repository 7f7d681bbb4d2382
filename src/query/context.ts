import { GraphQLError } from 'graphql'
import type { Clock, Timer } from '../actor/clock.js'
import { LazySignal } from '../actor/lazy-signal.js'
import type { BlockRecord } from '../catalog/block-record.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import type { StableIndex } from '../clickhouse/stable-index.js'
import type { StableRow } from '../clickhouse/stable-row.js'
import { encodeBase64url } from '../format/base64url.js'
import { type Id, idOfBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { sha256 } from '../proof/digest.js'
import { ChainMarks } from './continuation.js'
import type { HeaderSource, SignedHeader } from './headers.js'
import { LateJson, quoted } from './json-text.js'
import type { LateAnswers } from './late-answers.js'
import type { QueryEffort } from './query-effort.js'
import type { QueryLimits } from './query-limits.js'
import type { Texts } from './texts.js'

/** A warning for an answer that is correct but not complete. */
export interface Warning {
  readonly code: 'PARTIAL_RESULT' | 'UPSTREAM_UNAVAILABLE'
  readonly message: string
}

/** While content is awaited, so often the client is looked for. */
const lookMs = 200

/** Ids that an error names at most. */
const idsMax = 1000

/** Signature and key that are read from content. */
interface Load {
  readonly header: Promise<SignedHeader | undefined>
  /** Parts of the header as JSON, where the query selects them: each once, however often. */
  readonly parts: Partial<Record<keyof SignedHeader, LateJson>>
  isOver: boolean
}

/** What one request shares between its resolvers. */
export class QueryContext {
  readonly #loads = new Map<string, Load>()
  readonly #unavailable = new Set<string>()
  /** What was requested last, and its answer: a query may request it under many names. */
  #owner: { readonly address: Uint8Array; readonly key: string | undefined } | undefined
  #typed: { readonly row: Row; readonly type: string } | undefined
  readonly #warnings = new Map<string, Warning>()
  readonly #blocks = new Map<number, BlockRecord | undefined>()
  readonly #ownerKeys = new Map<string, Uint8Array>()
  #waited: Promise<undefined> | undefined
  /** Ends what is fetched for this request when it is waited for no more. */
  readonly #late = new LazySignal()
  readonly #timers: Timer[] = []
  #chainMarks: ChainMarks | undefined
  /** Bytes of the answer at which the pages of this query end, and the page that is written. */
  readonly #queryEndBytes: number
  #endBytes: number

  constructor(
    readonly index: ChainIndex,
    readonly texts: Texts,
    readonly effort: QueryEffort,
    readonly limits: QueryLimits,
    private readonly source: HeaderSource,
    private readonly clock: Clock,
    private readonly waiting: LateAnswers,
    /** Older blocks, where several machines share their index. */
    readonly stable?: StableIndex,
  ) {
    this.#queryEndBytes = effort.nextQuery()
    this.#endBytes = this.#queryEndBytes
  }

  /** Says that so many selections are left, the one that is written next included: each has the same part of the room. */
  share(selections: number): void {
    const { bytes } = this.effort
    this.#endBytes = bytes + (this.#queryEndBytes - bytes) / selections
  }

  /** Bytes that a page may still be written with. It has a row all the same where there are none. */
  get roomBytes(): number {
    return this.#endBytes - this.effort.bytes
  }

  /** Whether there are room and time for one more row of a page. */
  get hasRoom(): boolean {
    return this.roomBytes > 0 && !this.effort.isLate
  }

  /** Adds a warning, each text once. */
  warn(code: Warning['code'], message: string): void {
    this.#warnings.set(message, { code, message })
  }

  get warnings(): Warning[] {
    return [...this.#warnings.values()]
  }

  /** Errors without a path: all other values of the answer are usable. */
  get errors(): GraphQLError[] {
    const { size } = this.#unavailable
    if (size === 0) return []
    const ids = [...this.#unavailable]
    const count = size < idsMax ? size : `${size} or more`
    return [
      new GraphQLError(`Signature or key of ${count} transactions cannot be had at the moment`, {
        extensions: { code: 'UPSTREAM_UNAVAILABLE', ids },
      }),
    ]
  }

  /** The state of the chain in the cursors of this answer. */
  get marks(): ChainMarks {
    this.#chainMarks ??= new ChainMarks(this.index)
    return this.#chainMarks
  }

  /** Waits for what another engine answers (`QueryEffort.away`). Views of the database may not be read behind it. */
  async away<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    const answer = await this.effort.away(ask)
    this.#owner = undefined
    this.#typed = undefined
    return answer
  }

  /** What a row of ClickHouse says that the index here may not have. */
  learn({ row, block, ownerKey }: StableRow): void {
    if (!this.#blocks.has(block.height))
      this.#blocks.set(block.height, this.index.block(block.height) ?? (block.id === '' ? undefined : block))
    if (ownerKey.length > 0 && Buffer.compare(sha256(ownerKey), row.owner) === 0)
      this.#ownerKeys.set(row.owner.toString('latin1'), ownerKey)
  }

  /** The block at a height; cached, because the rows of a page are usually in few blocks. */
  block(height: number): BlockRecord | undefined {
    if (this.#blocks.has(height)) return this.#blocks.get(height)
    this.effort.charge()
    const block = this.index.block(height)
    this.#blocks.set(height, block)
    return block
  }

  /** The public key of an address in JSON, if the index has it. Throws an OutOfEffort. */
  ownerKey(address: Uint8Array): string | undefined {
    const last = this.#owner
    if (last !== undefined && Buffer.compare(last.address, address) === 0) return last.key
    const found =
      this.#ownerKeys.get(Buffer.from(address).toString('latin1')) ??
      this.index.ownerKey(address, this.effort)
    const key = found === undefined ? undefined : quoted(encodeBase64url(found))
    this.#owner = { address, key }
    return key
  }

  /** The value of the first tag called Content-Type in JSON. Throws an OutOfEffort. */
  contentType(row: Row): string {
    if (this.#typed?.row === row) return this.#typed.type
    this.effort.writing(row.tags.length)
    const found = row.tags.find((one) => this.texts.isContentType(one))
    const type = found === undefined ? 'null' : this.texts.tag(found).value
    this.#typed = { row, type }
    return type
  }

  /**
   * Signature or key from the row's content, in JSON: an empty text where it cannot be had, and undefined where it is not even
   * tried: then the answer's errors say so. Throws an OutOfEffort.
   */
  signed(row: Row, part: keyof SignedHeader): LateJson | undefined {
    const id = idOfBytes(row.id)
    const load = this.#loads.get(id) ?? this.#begin(id, row)
    if (load === undefined) return undefined
    load.parts[part] ??= new LateJson(
      load.header.then((header) => quoted(header === undefined ? '' : encodeBase64url(header[part]))),
    )
    return load.parts[part]
  }

  /** Waits until what comes from content has arrived, but not longer than there is room for the answer. */
  async arrival(arrived: Promise<unknown>): Promise<void> {
    if (await this.waiting.until(arrived, this.effort.bytes)) return
    for (const [id, { isOver }] of this.#loads)
      if (!isOver) this.#isUnavailable(id, 'too many large answers wait for theirs')
  }

  #isUnavailable(id: string, why: string): void {
    if (this.#unavailable.size < idsMax) this.#unavailable.add(id)
    this.warn('UPSTREAM_UNAVAILABLE', `Signatures or keys are left empty: ${why}`)
  }

  #begin(id: Id, row: Row): Load | undefined {
    const { loadsMax } = this.limits
    if (this.#loads.size >= loadsMax) {
      this.#isUnavailable(id, `only ${loadsMax} are read for one request`)
      return undefined
    }
    this.effort.lookUp(this.index.rowSteps)
    const header = this.#load(id, row)
    const load: Load = { header, parts: {}, isOver: false }
    void header.then(() => {
      load.isOver = true
    })
    this.#loads.set(id, load)
    return load
  }

  /** The answer is written: ends what is fetched for it, and was not awaited. */
  end(): void {
    for (const timer of this.#timers.splice(0)) timer.cancel()
    this.#late.abort()
  }

  /** Resolves after `waitMs`, or soon after the client has left: one deadline for all contents of this request. */
  #deadline(): Promise<undefined> {
    this.#waited ??= new Promise((resolve) => {
      this.#late.addEventListener('abort', () => resolve(undefined))
      this.#timers.push(
        this.clock.after(this.limits.waitMs, () => this.end()),
        this.clock.every(lookMs, () => {
          if (this.effort.hasNoReader) this.end()
        }),
      )
    })
    return this.#waited
  }

  async #load(id: Id, row: Row): Promise<SignedHeader | undefined> {
    const requester = { client: this.effort.client, signal: this.#late.signal }
    const header = await Promise.race([this.source.header(id, row, requester), this.#deadline()])
    if (header !== undefined && !isRefusal(header)) return header
    this.#isUnavailable(id, 'their content cannot be reached in time')
    return undefined
  }
}
