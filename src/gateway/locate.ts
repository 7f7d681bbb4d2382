import type { Log } from '../actor/log.js'
import type { Id } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import type { FileContent } from '../store/mapped.js'
import type { SoundFiles } from '../store/sound-files.js'
import type { Entries, Entry } from './entry.js'
import type { Blobs, Source } from './parts.js'

/** Where the bytes of an id are, as far as this machine can say without waiting. */
export type Located =
  /** On disk; `sound` where the file was checked. The content is closed by whoever got it. */
  | { readonly at: 'store'; readonly entry: Entry; readonly content: FileContent; readonly sound: boolean }
  /** On disk, but to be checked first: `check`, then locate again. Nothing is held. */
  | { readonly at: 'unchecked'; readonly entry: Entry }
  /** The catalog knows of it; the bytes are elsewhere. */
  | { readonly at: 'catalog'; readonly entry: Entry }
  | { readonly at: 'nowhere' }

const nowhere: Located = { at: 'nowhere' }

/** Finds ids: prepared entries first, then the catalog; never a source, and never waiting. */
export class Locator {
  #isToldUnreadable = false

  constructor(
    private readonly entries: Entries,
    private readonly blobs: Blobs,
    private readonly source: Source,
    private readonly sound: SoundFiles,
    private readonly log: Log,
    private readonly checkWaitBytes: number,
  ) {}

  /** `patient`: false where the caller has waited for a check already and takes the bytes as they are. */
  locate(id: Id, patient = true): Located {
    const entry = this.entries.get(id)
    if (entry === undefined) return nowhere
    if (entry.path === undefined) return { at: 'catalog', entry }
    const content = this.#open(entry, entry.path)
    // The fetcher looks at it once more, and asks the sources where it cannot have it either.
    if (content === 'unreadable') return { at: 'catalog', entry }
    if (content === undefined) {
      // Gone from disk behind the catalog's back, or between its word and ours.
      entry.path = undefined
      return { at: 'catalog', entry }
    }
    if (entry.isSound(content, this.sound)) return { at: 'store', entry, content, sound: true }
    if (
      content.sizeBytes !== entry.attributes.size ||
      (patient && content.sizeBytes <= this.checkWaitBytes)
    ) {
      content.close()
      return { at: 'unchecked', entry }
    }
    void this.check(entry)
    return { at: 'store', entry, content, sound: false }
  }

  /** A file that cannot be opened now (no descriptor, a failing disk) is no bug of a request: told once, until one can. */
  #open({ attributes, isPopular }: Entry, path: string): FileContent | undefined | 'unreadable' {
    try {
      const content = this.blobs.open(path, attributes.size, isPopular)
      this.#isToldUnreadable = false
      return content
    } catch (error) {
      if (!this.#isToldUnreadable) this.log.error({ err: error, path }, 'a blob cannot be opened')
      this.#isToldUnreadable = true
      return 'unreadable'
    }
  }

  /**
   * Has the blob checked, once for all who wait. Resolves false where it was not what its name says: it is gone then, and
   * the catalog may know less than before. An unanswered check leaves the blob unchecked and resolves true. Never rejects.
   */
  async check(entry: Entry): Promise<boolean> {
    const { digest, id } = entry.attributes
    const content = entry.path === undefined ? undefined : this.#open(entry, entry.path)
    if (digest === undefined || content === undefined || content === 'unreadable') return true
    // The stamp is taken first: a file that comes while the check runs is not the one that was checked.
    const { stamp, sizeBytes } = content
    content.close()
    entry.checking ??= this.source.check(id, digest)
    const outcome = await entry.checking
    entry.checking = undefined
    if (isRefusal(outcome)) {
      this.log.warn({ data: id, reason: outcome.message }, 'a blob could not be checked')
      return sizeBytes === entry.attributes.size
    }
    if (outcome && sizeBytes === entry.attributes.size) {
      entry.sound = stamp
      this.sound.add(digest, sizeBytes, stamp)
      return true
    }
    this.log.error({ data: id, path: entry.path }, 'a blob was not what its name says; it is fetched again')
    this.entries.forget(id)
    return false
  }
}
