import { encodeHex } from '../format/hex.js'
import { isId } from '../format/id.js'
import type { PayloadDigest } from './deep-digest.js'
import { ClientError } from './errors.js'
import { runningHash } from './hash.js'
import type { PayloadSource } from './payload.js'
import { isProvenItem, type StatedItem } from './reuse-proof.js'
import { type FetchLike, RemoteService } from './service.js'
import type { TextTag } from './tags.js'

/** What makes two files the same item: the bytes and all tags. */
export interface FileKey {
  /** SHA-256 of the bytes in hexadecimal digits. */
  readonly hash: string
  readonly tags: readonly TextTag[]
  /** Reads the bytes once more, for a proof that an item has just these. */
  readonly payload?: () => Promise<PayloadDigest>
}

/** An item that a layer found in answers of others. It is reused only where it is proven to have the bytes of the file. */
export interface ProvableItem {
  readonly id: string
  isProven(payload: PayloadDigest): Promise<boolean>
}

/** Finds items that are on the network already. A layer that throws is skipped, and reported. */
export interface FolderIndexLayer {
  readonly name: string
  /** What it finds is there now, as those who keep it have confirmed. Findings of other layers are confirmed before reuse. */
  readonly isCurrent?: boolean
  /** Items by `keyText` of those keys that it knows. An id alone is believed: the layer knows it of itself. */
  find(keys: readonly FileKey[]): Promise<ReadonlyMap<string, string | ProvableItem>>
  /** Called with what was uploaded together. */
  remember?(uploaded: readonly (readonly [key: FileKey, id: string])[]): Promise<void>
}

/** The tag with the hash of an item's bytes. */
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
  return encodeHex(hash.digest())
}

const perQuery = 50

/**
 * What a gateway's index knows: items of this owner with the tag `File-SHA256`, in blocks. The tag is the owner's own word, so
 * nobody else's items count. Items that are in no block yet are known to the service that took them.
 */
export function chainLayer(gatewayUrl: string, owner: string, fetcher: FetchLike): FolderIndexLayer {
  return {
    name: `chain by ${gatewayUrl}`,
    isCurrent: true,
    async find(keys) {
      const found = new Map<string, ProvableItem>()
      for (let at = 0; at < keys.length; at += perQuery) {
        const hashes = [...new Set(keys.slice(at, at + perQuery).map(({ hash }) => hash))]
        const filter = `tags: [{ name: "${hashTag}", values: ${JSON.stringify(hashes)} }]`
        const items = await ownItems(gatewayUrl, owner, filter, fetcher)
        const mined = items.filter(({ block }) => typeof block?.height === 'number')
        for (const [text, item] of provable({ gatewayUrl, owner, fetcher }, mined)) found.set(text, item)
      }
      return found
    },
  }
}

interface Queried {
  readonly gatewayUrl: string
  /** Base64url SHA-256 of the key that is to have signed. */
  readonly owner: string
  readonly fetcher: FetchLike
}

/** Items by the tags that the gateway states; the first of several alike counts. */
function provable(
  { gatewayUrl, owner, fetcher }: Queried,
  items: readonly StatedItem[],
): Map<string, ProvableItem> {
  const found = new Map<string, ProvableItem>()
  for (const item of items) {
    const { id, tags, owner: by } = item
    const hash = tags.find(({ name }) => name === hashTag)?.value
    if (by.address !== owner || hash === undefined || !isId(id)) continue
    const text = keyText({ hash, tags })
    const isProven = (payload: PayloadDigest): Promise<boolean> =>
      isProvenItem(gatewayUrl, item, owner, payload, fetcher)
    if (!found.has(text)) found.set(text, { id, isProven })
  }
  return found
}

/** The most that one question to an upload service may have. */
const perQuestion = 10_000

/**
 * What an upload service took of this owner (`/check-missing`): it finds by content what it verified itself, in one request
 * for ten thousand files. Their tags are requested from the gateway. A service without that route finds nothing.
 */
export function serviceLayer(
  uploadUrl: string,
  gatewayUrl: string,
  owner: string,
  fetcher: FetchLike,
): FolderIndexLayer {
  const service = new RemoteService(uploadUrl, fetcher, { tries: 1 })
  return {
    name: `service ${uploadUrl}`,
    isCurrent: true,
    async find(keys) {
      const found = new Map<string, ProvableItem>()
      const taken = await takenIds(service, owner, [...new Set(keys.map(({ hash }) => hash))])
      const ids = [...(taken?.values() ?? [])]
      for (let from = 0; from < ids.length; from += perQuery) {
        const filter = `ids: ${JSON.stringify(ids.slice(from, from + perQuery))}`
        const items = await ownItems(gatewayUrl, owner, filter, fetcher)
        for (const [text, item] of provable({ gatewayUrl, owner, fetcher }, items)) found.set(text, item)
      }
      return found
    },
  }
}

/** How services answer that do not know the question. */
const notUnderstood = [400, 403, 404, 405, 501]

/**
 * Ids of the items by which an owner has uploaded contents to a service, by their SHA-256 in hexadecimal digits. Undefined: the
 * service does not know that question.
 */
export async function takenIds(
  service: RemoteService,
  owner: string,
  hashes: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string> | undefined> {
  const taken = new Map<string, string>()
  for (let at = 0; at < hashes.length; at += perQuestion) {
    const { status, json } = await service.ask({
      method: 'POST',
      path: '/v1/check-missing',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ owner, sha256: hashes.slice(at, at + perQuestion) }),
      accepted: [200, ...notUnderstood],
      signal,
    })
    if (status !== 200) return undefined
    const { found } = (json ?? {}) as { readonly found?: Readonly<Record<string, unknown>> }
    for (const [hash, id] of Object.entries(found ?? {}))
      if (typeof id === 'string' && isId(id)) taken.set(hash, id)
  }
  return taken
}

/** How long a gateway may take for a page of items: without them the files are uploaded. */
const pageMs = 60_000

const stated = 'id signature anchor recipient block { height } owner { address key } tags { name value }'

async function ownItems(
  gatewayUrl: string,
  owner: string,
  filter: string,
  fetcher: FetchLike,
): Promise<readonly StatedItem[]> {
  const given = `first: 100, owners: ["${owner}"], ${filter}`
  const query = `{ transactions(${given}) { edges { node { ${stated} } } } }`
  const service = new RemoteService(gatewayUrl, fetcher, { tries: 1, answerMs: pageMs })
  const { json } = await service.ask({
    method: 'POST',
    path: '/graphql',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
    accepted: [200],
  })
  if (typeof json !== 'object' || json === null)
    throw new ClientError('malformed-answer', `${gatewayUrl} sends no JSON`, 'try another gateway')
  const { data } = json as { data?: { transactions?: { edges: { node: StatedItem }[] } } }
  return (data?.transactions?.edges ?? []).map(({ node }) => node)
}
