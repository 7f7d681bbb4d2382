import { isContentId, toHex } from './bytes.js'
import { ClientError } from './errors.js'
import { runningHash } from './hash.js'
import type { PayloadSource } from './payload.js'
import type { ResumeStore } from './resume-store.js'
import type { FetchLike } from './service.js'
import type { TextTag } from './tags.js'

/** What makes two files the same item: the bytes and all tags. */
export interface FileKey {
  /** SHA-256 of the bytes in hexadecimal digits. */
  readonly hash: string
  readonly tags: readonly TextTag[]
}

/** Knows items that are on the network already. One that throws is skipped, and said. */
export interface FolderIndexLayer {
  readonly name: string
  /** Ids by `keyText` of those keys that it knows. */
  find(keys: readonly FileKey[]): Promise<ReadonlyMap<string, string>>
  /** Hears of what was uploaded together. */
  remember?(uploaded: readonly (readonly [key: FileKey, id: string])[]): Promise<void>
}

/** The tag that says which bytes an item has. */
export const hashTag = 'File-SHA256'

/** One text for a key: tags in the order of their names. */
export function keyText({ hash, tags }: FileKey): string {
  const sorted = tags.map(({ name, value }) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).sort()
  return `${hash} ${sorted.join(',')}`
}

/** SHA-256 of content, read piece by piece. */
export async function contentHash(source: PayloadSource): Promise<string> {
  const hash = runningHash('sha256')
  for await (const piece of source.open(0)) hash.update(piece)
  return toHex(hash.digest())
}

/** What this store has seen uploaded: the journal by which a half-done folder goes on. */
export function journalLayer(store: ResumeStore, owner: string): FolderIndexLayer {
  const name = (key: FileKey): string => `file:${owner}:${keyText(key)}`
  return {
    name: 'journal',
    async find(keys) {
      const known = await store.getMany?.(keys.map(name))
      const found = new Map<string, string>()
      for (const key of keys) {
        const id = known === undefined ? await store.get(name(key)) : known.get(name(key))
        if (id !== undefined && isContentId(id)) found.set(keyText(key), id)
      }
      return found
    },
    async remember(uploaded) {
      const values = new Map(uploaded.map(([key, id]) => [name(key), id]))
      if (store.setMany !== undefined && values.size > 1) return store.setMany(values)
      for (const [key, id] of values) await store.set(key, id)
    },
  }
}

interface QueriedItem {
  readonly id: string
  readonly owner: { readonly address: string }
  readonly tags: readonly TextTag[]
}

const perQuery = 50

/**
 * What a gateway's index knows: items of this owner with the tag `File-SHA256`. The tag is the owner's own word, so nobody else's
 * items count.
 */
export function chainLayer(gatewayUrl: string, owner: string, fetcher: FetchLike): FolderIndexLayer {
  return {
    name: `chain by ${gatewayUrl}`,
    async find(keys) {
      const found = new Map<string, string>()
      for (let at = 0; at < keys.length; at += perQuery) {
        const hashes = [...new Set(keys.slice(at, at + perQuery).map(({ hash }) => hash))]
        const filter = `tags: [{ name: "${hashTag}", values: ${JSON.stringify(hashes)} }]`
        collect(found, await ownItems(gatewayUrl, owner, filter, fetcher), owner)
      }
      return found
    },
  }
}

/** Items by what their owner said of them; the first of several alike counts. */
function collect(found: Map<string, string>, items: readonly QueriedItem[], owner: string): void {
  for (const { id, tags, owner: by } of items) {
    const hash = tags.find(({ name }) => name === hashTag)?.value
    if (by.address !== owner || hash === undefined || !isContentId(id)) continue
    const text = keyText({ hash, tags })
    if (!found.has(text)) found.set(text, id)
  }
}

/** The most that one question to an upload service may have. */
const perQuestion = 10_000

/**
 * What an upload service took of this owner (`/check-missing`): it knows by content what it verified itself, in one question
 * for ten thousand files. Their tags are asked of the gateway. A service without that question knows nothing.
 */
export function serviceLayer(
  uploadUrl: string,
  gatewayUrl: string,
  owner: string,
  fetcher: FetchLike,
): FolderIndexLayer {
  return {
    name: `service ${uploadUrl}`,
    async find(keys) {
      const found = new Map<string, string>()
      const hashes = [...new Set(keys.map(({ hash }) => hash))]
      for (let at = 0; at < hashes.length; at += perQuestion) {
        const ids = await takenIds(uploadUrl, owner, hashes.slice(at, at + perQuestion), fetcher)
        for (let from = 0; from < ids.length; from += perQuery) {
          const filter = `ids: ${JSON.stringify(ids.slice(from, from + perQuery))}`
          collect(found, await ownItems(gatewayUrl, owner, filter, fetcher), owner)
        }
      }
      return found
    },
  }
}

async function takenIds(
  uploadUrl: string,
  owner: string,
  sha256: readonly string[],
  fetcher: FetchLike,
): Promise<string[]> {
  const response = await fetcher(`${uploadUrl}/v1/check-missing`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ owner, sha256 }),
  })
  const { status } = response
  if (status === 404 || status === 405) return []
  if (status !== 200)
    throw new ClientError('unavailable', `${uploadUrl} answered ${status}`, 'try again later', { status })
  const { found } = (await response.json()) as { found?: Readonly<Record<string, unknown>> }
  return Object.values(found ?? {})
    .map(String)
    .filter(isContentId)
}

async function ownItems(
  gatewayUrl: string,
  owner: string,
  filter: string,
  fetcher: FetchLike,
): Promise<readonly QueriedItem[]> {
  const given = `first: 100, owners: ["${owner}"], ${filter}`
  const query = `{ transactions(${given}) { edges { node { id owner { address } tags { name value } } } } }`
  const response = await fetcher(`${gatewayUrl}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  if (response.status !== 200) {
    const { status } = response
    throw new ClientError('unavailable', `${gatewayUrl} answered ${status}`, 'try another gateway', {
      status,
    })
  }
  const { data } = (await response.json()) as { data?: { transactions?: { edges: { node: QueriedItem }[] } } }
  return (data?.transactions?.edges ?? []).map(({ node }) => node)
}
