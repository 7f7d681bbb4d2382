import type { SluiceClient } from './client.js'
import { type FileKey, type FolderIndexLayer, keyText, type ProvableItem } from './folder-index.js'
import { Journal } from './journal.js'
import { inParallel } from './parallel.js'
import { presentOnes, type ReportedUpload } from './presence.js'

/** Files read and compared with the items of others at once. */
const provenAtOnce = 16

export interface ReuseOptions {
  readonly folderIndex?: readonly FolderIndexLayer[]
  readonly isPresent?: (id: string) => Promise<boolean>
  readonly signal?: AbortSignal | undefined
}

/** Finds what need not be uploaded: it was uploaded before, and whoever keeps it confirms that it is still there. */
export class FolderReuse {
  readonly skipped: string[] = []
  readonly #layers: readonly FolderIndexLayer[]
  #journal: Journal | undefined

  /** `owner`: base64url SHA-256 of the key. `notice` is called for a layer that failed. */
  constructor(
    private readonly client: SluiceClient,
    private readonly owner: string,
    private readonly options: ReuseOptions,
    private readonly notice: (message: string) => void,
  ) {
    this.#layers = options.folderIndex ?? []
  }

  /** Ids by `keyText` of those keys that need not be uploaded. */
  async find(keys: readonly FileKey[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map(await this.findInJournal(keys))
    for (const layer of this.#layers) {
      const open = keys.filter((key) => !found.has(keyText(key)))
      const items = await this.#findIn(layer, open)
      const isVerified = layer.isCurrent === true && this.options.isPresent === undefined
      const candidates: { key: FileKey; id: string; carrier: string }[] = []
      await inParallel(open, provenAtOnce, async (key) => {
        const id = await this.#provenId(layer, key, items.get(keyText(key)))
        if (id !== undefined) candidates.push({ key, id, carrier: id })
      })
      const there = isVerified ? undefined : await this.#present(candidates)
      for (const { key, id } of candidates) if (there?.has(id) ?? true) found.set(keyText(key), id)
    }
    return found
  }

  /** Undefined: it is not known, or not proven to have the bytes of the file. */
  async #provenId(
    { name }: FolderIndexLayer,
    { payload }: FileKey,
    found: string | ProvableItem | undefined,
  ): Promise<string | undefined> {
    if (found === undefined || typeof found === 'string') return found
    if (payload !== undefined && (await found.isProven(await payload()))) return found.id
    this.notice(`${name}: ${found.id} is not reused, because it is not proven to have the bytes of the file`)
    return undefined
  }

  /** The same of what was uploaded from here alone. */
  async findInJournal(keys: readonly FileKey[]): Promise<ReadonlyMap<string, string>> {
    if (keys.length === 0) return new Map()
    const known = await (await this.#opened()).find(keys)
    const candidates = keys.flatMap((key) => {
      const kept = known.get(keyText(key))
      return kept === undefined ? [] : [{ key, ...kept }]
    })
    const there = await this.#present(candidates)
    return new Map(candidates.flatMap(({ key, id }) => (there.has(id) ? [[keyText(key), id] as const] : [])))
  }

  /** What went in one item, which is `carrier`. */
  async remember(uploaded: readonly (readonly [key: FileKey, id: string])[], carrier: string): Promise<void> {
    await (await this.#opened()).remember(uploaded, carrier)
    for (const layer of this.#layers) await layer.remember?.(uploaded)
  }

  /** What is of no use to layers: a manifest. */
  async rememberHere(key: FileKey, id: string): Promise<void> {
    await (await this.#opened()).remember([[key, id]], id)
  }

  async #opened(): Promise<Journal> {
    const { store, service, serviceAddress } = this.client.uploadParts
    this.#journal ??= new Journal(store, this.owner, `${service.url} ${(await serviceAddress()) ?? ''}`)
    return this.#journal
  }

  async #present(
    candidates: readonly (Omit<ReportedUpload, 'hash'> & { readonly key: FileKey })[],
  ): Promise<ReadonlySet<string>> {
    const { isPresent, signal } = this.options
    if (isPresent !== undefined) {
      const there = new Set<string>()
      for (const { id } of candidates) if (await isPresent(id)) there.add(id)
      return there
    }
    const { service, gateway } = this.client.uploadParts
    return presentOnes(
      { service, gateway, owner: this.owner, signal },
      candidates.map(({ key, id, carrier }) => ({ id, carrier, hash: key.hash })),
    )
  }

  async #findIn(
    layer: FolderIndexLayer,
    keys: readonly FileKey[],
  ): Promise<ReadonlyMap<string, string | ProvableItem>> {
    if (keys.length === 0) return new Map()
    try {
      return await layer.find(keys)
    } catch (error) {
      if (!(error instanceof Error)) throw error
      const message = `${layer.name}: ${error.message}`
      this.skipped.push(message)
      this.notice(message)
      return new Map()
    }
  }
}
