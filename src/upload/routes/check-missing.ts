import { setImmediate as othersFirst } from 'node:timers/promises'
import { FairSlots } from '../../actor/fair-slots.js'
import { parsedJson } from '../../format/json.js'
import { isRefusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import type { Uploads } from '../records/uploads.js'
import { jsonAnswer, refusalAnswer, textAnswer, type UploadAnswer } from '../requests/upload-answers.js'

const hashesMax = 10_000
const bodyMaxBytes = 1 << 20

interface MissingQuery {
  /** SHA-256 of contents, hexadecimal. */
  readonly sha256: readonly string[]
  readonly owner: string
}

/** Hashes looked up in one turn, some 10 us each: others have theirs in between. */
const atOnce = 100
/** Requests that wait for their turn, of all clients and of one. */
const slots = { max: 1, waitingMax: 200, eachMax: 20, isBrief: true }

/**
 * Which of some contents an owner has not uploaded here: `{sha256: [hex], owner}` is answered by
 * `{missing: [hex], found: {hex: id}}`.
 * Content is the payload of an item whose signature was verified, and the owner is who signed it: nobody's word is taken. One
 * request is looked up at a time, in turns and fairly, because each may have ten thousand hashes.
 */
export class MissingContents {
  readonly #slots = new FairSlots(slots)

  constructor(private readonly uploads: Pick<Uploads, 'ofContent'>) {}

  /** `client`: whose turn it takes. To be called before the handler first waits. */
  async check(request: Request, client: string): Promise<UploadAnswer> {
    const body = await request.body(bodyMaxBytes)
    if (isRefusal(body)) return refusalAnswer(body)
    const slot = await this.#slots.wait(client)
    if (isRefusal(slot)) return refusalAnswer(slot)
    try {
      const query = read(Buffer.from(body).toString())
      return typeof query === 'string' ? textAnswer(400, query) : jsonAnswer(200, await this.#look(query))
    } finally {
      slot()
    }
  }

  async #look({ sha256, owner }: MissingQuery): Promise<object> {
    const missing: string[] = []
    const found: Record<string, string> = {}
    for (const [at, hash] of [...new Set(sha256)].entries()) {
      if (at % atOnce === atOnce - 1) await othersFirst()
      const id = this.uploads.ofContent(owner, Buffer.from(hash, 'hex'))
      if (id === undefined) missing.push(hash)
      else found[hash] = id
    }
    return { missing, found }
  }
}

/** What is wrong with it, where it is text. */
function read(text: string): MissingQuery | string {
  const given = parsedJson(text, { values: hashesMax + 16 })
  if (typeof given !== 'object' || given === null) return 'The body must be a JSON object'
  const { sha256, owner } = given as Partial<Record<keyof MissingQuery, unknown>>
  if (typeof owner !== 'string' || !/^[\w-]{43}$/.test(owner))
    return 'owner must be an address: base64url SHA-256 of the key'
  if (!Array.isArray(sha256) || sha256.length > hashesMax)
    return `sha256 must be a list of at most ${hashesMax} hashes`
  const hashes: unknown[] = sha256
  const good = hashes.filter((hash) => typeof hash === 'string' && /^[\da-f]{64}$/i.test(hash)) as string[]
  if (good.length < hashes.length) return 'Each of sha256 must be 64 hexadecimal digits'
  return { sha256: good.map((hash) => hash.toLowerCase()), owner }
}
