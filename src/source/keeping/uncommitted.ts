import type { Id } from '../../format/id.js'
import type { Announcement } from '../announcement.js'

/** Payloads that wait so: beyond, whoever brings one waits for its commit. Each takes some 2 KiB. */
const waitingMax = 8192

/**
 * Complete and checked payloads in segments that the catalog does not have yet, because commits are made for many at once. Until
 * then requests for them are answered from here. It is lost at the end of the process, and so is the payload's record.
 */
export class Uncommitted {
  readonly #announcements = new Map<Id, Announcement>()

  get(id: Id): Announcement | undefined {
    return this.#announcements.get(id)
  }

  /** True: no more of them should wait. */
  get isFull(): boolean {
    return this.#announcements.size > waitingMax
  }

  note(announcement: Announcement): void {
    this.#announcements.set(announcement.attributes.id, announcement)
  }

  /** The catalog has heard of it, or never will. */
  forget(announcement: Announcement): void {
    const { id } = announcement.attributes
    if (this.#announcements.get(id) === announcement) this.#announcements.delete(id)
  }
}
