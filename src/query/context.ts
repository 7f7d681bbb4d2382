import { GraphQLError } from 'graphql'
import type { Clock } from '../actor/clock.js'
import type { BlockRecord } from '../catalog/block-record.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import { idOfBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { ChainMarks } from './continuation.js'
import type { HeaderSource, SignedHeader } from './headers.js'
import type { QueryEffort } from './query-effort.js'
import type { QueryLimits } from './query-limits.js'
import type { Texts } from './texts.js'

/** A warning for an answer that is correct but not complete. */
export interface Warning {
  readonly code: 'PARTIAL_RESULT' | 'UPSTREAM_UNAVAILABLE'
  readonly message: string
}

/** What one request shares between its resolvers. */
export class QueryContext {
  readonly #loads = new Map<string, Promise<SignedHeader | undefined>>()
  readonly #unavailable: string[] = []
  readonly #warnings = new Map<string, Warning>()
  readonly #blocks = new Map<number, BlockRecord>()
  #late: Promise<undefined> | undefined
  #chainMarks: ChainMarks | undefined

  constructor(
    readonly index: ChainIndex,
    readonly texts: Texts,
    readonly effort: QueryEffort,
    readonly limits: QueryLimits,
    private readonly source: HeaderSource,
    private readonly clock: Clock,
  ) {}

  /** Adds a warning, each text once. */
  warn(code: Warning['code'], message: string): void {
    this.#warnings.set(message, { code, message })
  }

  get warnings(): Warning[] {
    return [...this.#warnings.values()]
  }

  /** Errors without a path: all other values of the answer are usable. */
  get errors(): GraphQLError[] {
    if (this.#unavailable.length === 0) return []
    const ids = [...new Set(this.#unavailable)]
    return [
      new GraphQLError(`Signature or key of ${ids.length} transactions cannot be had at the moment`, {
        extensions: { code: 'UPSTREAM_UNAVAILABLE', ids },
      }),
    ]
  }

  /** The state of the chain in the cursors of this answer. */
  get marks(): ChainMarks {
    this.#chainMarks ??= new ChainMarks(this.index)
    return this.#chainMarks
  }

  /** The block at a height; cached, because the rows of a page are usually in few blocks. */
  block(height: number): BlockRecord | undefined {
    const known = this.#blocks.get(height)
    if (known !== undefined) return known
    this.effort.charge()
    const block = this.index.block(height)
    if (block !== undefined) this.#blocks.set(height, block)
    return block
  }

  /**
   * Signature and key from the row's content; undefined where they cannot be had: then the answer's errors
   * say so.
   */
  header(row: Row): Promise<SignedHeader | undefined> {
    const id = idOfBytes(row.id)
    const under = this.#loads.get(id)
    if (under !== undefined) return under
    const load = this.#load(id)
    this.#loads.set(id, load)
    return load
  }

  /** Resolves after `waitMs`: one deadline for all contents of this request. */
  #deadline(): Promise<undefined> {
    this.#late ??= new Promise((resolve) => {
      this.clock.after(this.limits.waitMs, () => resolve(undefined))
    })
    return this.#late
  }

  async #load(id: ReturnType<typeof idOfBytes>): Promise<SignedHeader | undefined> {
    const tooMany = this.#loads.size >= this.limits.loadsMax
    const header = tooMany ? undefined : await Promise.race([this.source.header(id), this.#deadline()])
    if (header !== undefined && !isRefusal(header)) return header
    this.#unavailable.push(id)
    const why = tooMany
      ? `only ${this.limits.loadsMax} are read for one request`
      : 'their content cannot be reached in time'
    this.warn('UPSTREAM_UNAVAILABLE', `Signatures or keys are left empty: ${why}`)
    return undefined
  }
}
