import { randomInt } from 'node:crypto'
import type { Log } from '../../actor/log.js'
import type { ItemsElsewhere } from '../../cluster/items-elsewhere.js'
import { type Id, isId } from '../../format/id.js'
import { writePatiently } from '../../store/patient-write.js'
import type { Uploads } from '../records/uploads.js'

export interface ListedCheckParts {
  readonly uploads: Uploads
  readonly items: Pick<ItemsElsewhere, 'receiptOf'>
  readonly logger: Pick<Log, 'error' | 'info' | 'warn'>
  readonly closing: AbortSignal
}

/** Items that were listed since the last look: so many of them, at random, are looked up. */
const recentMax = 2000
const pageMax = 200
/** The name of the value on disk: an item that was listed. */
const word = 'listed'
const lacks =
  'the database of the cluster has no rows of items that were listed there: all items of this machine are compared'

/**
 * Notices where the database of the cluster lacks items that were listed there: a backup was restored, or a copy that was behind
 * took over. Has them listed again.
 */
export class ListedCheck {
  #recent: Id[] = []

  constructor(private readonly parts: ListedCheckParts) {}

  /** The item is listed. */
  note(id: Id): void {
    if (this.#recent.length < recentMax) this.#recent.push(id)
    else this.#recent[randomInt(recentMax)] = id
  }

  /** Looks whether what was listed is there. Where the database does not answer, the next look does. */
  async look(): Promise<void> {
    const { uploads, logger } = this.parts
    const kept = uploads.value(word)
    const recent = this.#recent
    const ids = kept !== undefined && isId(kept) ? [...recent, kept] : recent
    this.#recent = []
    const missing = await this.#missing(ids)
    const [one] = missing ?? []
    if (one !== undefined) {
      logger.warn({ id: one, missing: missing?.length }, lacks)
      // Where the program ends before all are compared, the next start begins anew.
      if (!(await this.#write(() => uploads.putValue(word, one)))) return
    }
    const isDone = missing !== undefined && (one === undefined || (await this.#compareAll()))
    const newest = recent.at(-1) ?? (one === undefined ? kept : undefined) ?? ''
    if (!isDone) for (const id of recent) this.note(id)
    else if (newest !== (kept ?? '')) await this.#write(() => uploads.putValue(word, newest))
  }

  /** Those that are not listed; undefined: no answer. */
  async #missing(ids: readonly Id[]): Promise<Id[] | undefined> {
    const missing: Id[] = []
    for (let at = 0; at < ids.length; at += pageMax) {
      const page = ids.slice(at, at + pageMax)
      const found = await Promise.all(page.map((id) => this.parts.items.receiptOf(id)))
      if (found.includes(undefined)) return undefined
      missing.push(...page.filter((_, index) => found[index] === 'none'))
    }
    return missing
  }

  /** All items of this machine that are not listed wait for it then. False: not all could be compared. */
  async #compareAll(): Promise<boolean> {
    const { uploads, closing } = this.parts
    for (let after: Id | undefined; !closing.aborted; ) {
      const page = uploads.idsBehind(after, pageMax)
      after = page.at(-1)
      if (after === undefined) return true
      const missing = await this.#missing(page)
      if (missing === undefined) return false
      const queue = (): void => {
        for (const id of missing) uploads.unlisted.put(id)
      }
      if (missing.length > 0 && !(await this.#write(queue))) return false
    }
    return false
  }

  #write(act: () => void): Promise<boolean> {
    const { uploads, closing, logger } = this.parts
    return writePatiently(() => uploads.environment.write(act), closing, logger)
  }
}
