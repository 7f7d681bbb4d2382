import { createHash } from 'node:crypto'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { isMissing } from '../store/blobs.js'
import { type ReadPublication, readPublication } from './document.js'
import { replaceFile } from './replace-file.js'

/** A gateway whose publication is followed. */
export type Subscription = {
  /** Address of its own routes, e.g. `https://gateway.example/gateway`, without a trailing slash. */
  readonly url: string
  /** Where they may be instead: gateways of the other vocabulary have another path. */
  readonly others?: readonly string[]
} & (
  | {
      /** Base58 of the Ed25519 key that must sign. */
      readonly keyId: string
    }
  | {
      /** Base58 of its wallet; a registry lists the keys that sign for it. */
      readonly publisher: string
    }
)

const seen = z.object({
  sequence: z.number().int().min(1),
  sha256: z.string(),
  checkedMs: z.number(),
  problem: z.string(),
  /** Which address answered; the subscription's first where absent. */
  url: z.string().optional(),
})
const fetched = z.object({
  digest: z.string(),
  sizeBytes: z.number(),
  goneMs: z.number().optional(),
  torrent: z
    .string()
    .regex(/^[0-9a-f]{40}$/)
    .optional(),
})
const stateShape = z.object({
  /** Keyed by address and key. */
  seen: z.record(z.string(), seen),
  /** Keyed by index and band id, a slash between: what was installed from elsewhere. */
  fetched: z.record(z.string(), fetched),
})

/** What was last seen of a publisher. `problem`: '' where all is well. */
export type PublisherState = z.infer<typeof seen>
/**
 * A band that was installed. `digest`: of its list of files; `goneMs`: since when no publisher lists it; `torrent`: its infohash
 * (v1), where its .torrent file was kept.
 */
export type Fetched = z.infer<typeof fetched>

/**
 * State of the subscriber that must survive a restart: the highest sequence of each publisher, its last document, and
 * which bands it put in place. Below `DATA_PATH/bands/subscribed`; each change is on disk before anything is done
 * because of it.
 */
export class SubscriptionState {
  readonly seen = new Map<string, PublisherState>()
  readonly fetched = new Map<string, Fetched>()
  #saving: Promise<void> = Promise.resolve()

  private constructor(private readonly folder: string) {}

  /** Reads it. Rejects where the file is damaged: a restart would not repair that. */
  static async open(bandsPath: string): Promise<SubscriptionState> {
    const folder = join(bandsPath, 'subscribed')
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const state = new SubscriptionState(folder)
    const bytes = await readOrMissing(join(folder, 'state.json'))
    if (bytes === undefined) return state
    const read = stateShape.parse(JSON.parse(bytes.toString('utf8')))
    for (const [key, value] of Object.entries(read.seen)) state.seen.set(key, value)
    for (const [key, value] of Object.entries(read.fetched)) state.fetched.set(key, value)
    return state
  }

  /** Writes what is known now; several writers are written for one after the other. */
  save(): Promise<void> {
    const saving = this.#saving.then(() => this.#save())
    this.#saving = saving.catch(() => undefined)
    return saving
  }

  async #save(): Promise<void> {
    const state = { seen: Object.fromEntries(this.seen), fetched: Object.fromEntries(this.fetched) }
    await replaceFile(join(this.folder, 'state.json'), JSON.stringify(state, undefined, 2))
  }

  /** The last document of a publisher that was followed: it was verified when it came. */
  async document(subscription: Subscription): Promise<ReadPublication | undefined> {
    const path = this.#documentPath(subscription)
    const bytes = await readOrMissing(path)
    const read: ReadPublication | Refusal | undefined =
      bytes === undefined ? undefined : readPublication(bytes)
    if (read === undefined || !isRefusal(read)) return read
    await rm(path)
    return undefined
  }

  async keepDocument(subscription: Subscription, bytes: Uint8Array): Promise<void> {
    await replaceFile(this.#documentPath(subscription), bytes)
  }

  #documentPath(subscription: Subscription): string {
    const name = createHash('sha256').update(subscriptionKey(subscription)).digest('hex').slice(0, 32)
    return join(this.folder, `${name}.json`)
  }
}

/** Names a subscription in the state: another key or wallet at the same address is another publisher. */
export function subscriptionKey(subscription: Subscription): string {
  const { url } = subscription
  return 'keyId' in subscription ? `${url}#${subscription.keyId}` : `${url}#wallet:${subscription.publisher}`
}

async function readOrMissing(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}
