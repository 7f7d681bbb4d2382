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
  /** Hears of what was uploaded. */
  remember?(key: FileKey, id: string): Promise<void>
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
      const found = new Map<string, string>()
      for (const key of keys) {
        const id = await store.get(name(key))
        if (id !== undefined && isContentId(id)) found.set(keyText(key), id)
      }
      return found
    },
    remember: (key, id) => store.set(name(key), id),
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
        for (const { id, tags, owner: by } of await ownItems(gatewayUrl, owner, hashes, fetcher)) {
          const hash = tags.find(({ name }) => name === hashTag)?.value
          if (by.address !== owner || hash === undefined || !isContentId(id)) continue
          const text = keyText({ hash, tags })
          if (!found.has(text)) found.set(text, id)
        }
      }
      return found
    },
  }
}

async function ownItems(
  gatewayUrl: string,
  owner: string,
  hashes: readonly string[],
  fetcher: FetchLike,
): Promise<readonly QueriedItem[]> {
  const filter = `first: 100, owners: ["${owner}"], tags: [{ name: "${hashTag}", values: ${JSON.stringify(hashes)} }]`
  const query = `{ transactions(${filter}) { edges { node { id owner { address } tags { name value } } } } }`
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
