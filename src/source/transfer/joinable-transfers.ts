import type { Id } from '../../format/id.js'
import type { ContentRequest } from '../source-messages.js'
import type { ContentTransfer } from './content-transfer.js'

/** Transfers under way that further requests may join: by their key, and those of whole payloads by id. */
export class JoinableTransfers {
  readonly #byKey = new Map<string, ContentTransfer>()
  readonly #keys = new Map<ContentTransfer, string>()
  readonly #wholes = new Map<Id, Set<ContentTransfer>>()

  get all(): readonly ContentTransfer[] {
    return [...this.#byKey.values()]
  }

  /** The transfer with exactly these parameters (`transferKey`). */
  at(key: string): ContentTransfer | undefined {
    return this.#byKey.get(key)
  }

  /** Those of the whole payload of `id`, with any parameters. */
  wholesOf(id: Id): readonly ContentTransfer[] {
    return [...(this.#wholes.get(id) ?? [])]
  }

  has(transfer: ContentTransfer): boolean {
    return this.#keys.has(transfer)
  }

  add(key: string, transfer: ContentTransfer): void {
    this.#byKey.set(key, transfer)
    this.#keys.set(transfer, key)
    const { id, window } = transfer.request
    if (window === undefined) this.#wholes.set(id, (this.#wholes.get(id) ?? new Set()).add(transfer))
  }

  /** Nobody joins it from now on. */
  remove(transfer: ContentTransfer): void {
    const key = this.#keys.get(transfer)
    if (key === undefined) return
    this.#keys.delete(transfer)
    if (this.#byKey.get(key) === transfer) this.#byKey.delete(key)
    const { id } = transfer.request
    const ofId = this.#wholes.get(id)
    if (ofId?.delete(transfer) === true && ofId.size === 0) this.#wholes.delete(id)
  }
}

/**
 * The key by which others join a transfer: all that may change its result. `words`: of its hints and its trail. `separate`: the
 * transfer brings the window alone.
 */
export function transferKey({ id, window }: ContentRequest, words: string, separate: boolean): string {
  const ends = window?.mayEndEarlier === true ? '?' : ''
  const part = separate && window !== undefined ? `${window.start}-${window.end}${ends}` : ''
  return `${id} ${part} ${words}`
}
