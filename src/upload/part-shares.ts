import { textAnswer, type UploadAnswer } from './answers.js'

/** Files of all uploads together. */
const filesMax = 500_000
/** Uploads that one client may have open. */
const uploadsEachMax = 1000

interface Share {
  uploads: number
  bytes: number
}

/**
 * Who holds how much of the disk with items that are not whole yet: one client at most a quarter, so that nobody can keep all
 * others from uploading. Clients without a name (of this machine) are bounded by the whole alone.
 */
export class PartShares {
  readonly #shares = new Map<string, Share>()
  #bytes = 0
  #files = 0

  constructor(private readonly maxBytes: number) {}

  #of(client: string): Share {
    const known = this.#shares.get(client)
    if (known !== undefined) return known
    const made = { uploads: 0, bytes: 0 }
    this.#shares.set(client, made)
    return made
  }

  #change(client: string | undefined, uploads: number, bytes: number): void {
    if (client === undefined) return
    const share = this.#of(client)
    share.uploads += uploads
    share.bytes += bytes
    if (share.uploads === 0 && share.bytes === 0) this.#shares.delete(client)
  }

  enter(client: string | undefined): void {
    this.#change(client, 1, 0)
  }

  leave(client: string | undefined): void {
    this.#change(client, -1, 0)
  }

  hold(client: string | undefined, bytes: number, files: number): void {
    this.#bytes += bytes
    this.#files += files
    this.#change(client, 0, bytes)
  }

  /** Undefined: this client may open one more. */
  crowded(client: string | undefined): UploadAnswer | undefined {
    if (client === undefined || (this.#shares.get(client)?.uploads ?? 0) < uploadsEachMax) return undefined
    return textAnswer(429, 'Too many of your uploads are open: finish or cancel some', '\r\nRetry-After: 60')
  }

  /** Undefined: so many more bytes may come. */
  full(client: string | undefined, bytes: number): UploadAnswer | undefined {
    if (this.#bytes + bytes > this.maxBytes || this.#files >= filesMax)
      return textAnswer(503, 'Too many parts wait to be finalized', '\r\nRetry-After: 60')
    const own = client === undefined ? 0 : (this.#shares.get(client)?.bytes ?? 0)
    if (own + bytes <= this.maxBytes / 4 || client === undefined) return undefined
    const text = 'Too many bytes of your uploads wait to be finalized: finish or cancel some'
    return textAnswer(429, text, '\r\nRetry-After: 60')
  }
}
