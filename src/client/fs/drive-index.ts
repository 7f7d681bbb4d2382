import { Gathered } from '../../format/gathered.js'
import { parsedJson } from '../../format/json.js'
import { isUnsureAbsence } from '../../format/unsure-absence.js'
import { textOfBytes } from '../bytes.js'
import { ClientError } from '../errors.js'
import { answerBounds, type FetchLike } from '../service.js'
import { type TextTag, tagValueOf } from '../tags.js'
import { type DriveProblem, heightOf, isListedItem, type ListedItem } from './entities.js'

/** Items of a drive, and the metadata that snapshots had along: as text, or base64 of what is encrypted. */
export interface DriveItems {
  readonly items: readonly ListedItem[]
  readonly metadata: ReadonlyMap<string, string>
  readonly problems: readonly DriveProblem[]
}

const pageSize = 1000
/** Gateways may give less than is requested, 100 a page at some: so many are a million items there. */
const pagesUsualMax = 10_000
/** A page of items with as many tags as there may be has some 5 MB. */
const answerBytesMax = 64 * 1024 * 1024
/** Content of snapshots and metadata is held in memory. */
const contentBytesMax = 512 * 1024 * 1024
/** A snapshot of 100,000 files, with a dozen tags each, has some 5 million values. */
const snapshotBounds = { values: 10_000_000 }

const nodeFields = 'id tags { name value } owner { address } block { height timestamp } bundledIn { id }'
const pageFields = `{ pageInfo { hasNextPage } edges { cursor node { ${nodeFields} } } }`

interface Page {
  readonly edges: readonly { readonly cursor: string; readonly node: ListedItem }[]
  readonly pageInfo: { readonly hasNextPage: boolean }
}

interface Answer {
  readonly data?: {
    readonly transactions?: Page
    readonly transaction?: { readonly tags: readonly TextTag[] } | null
  }
  readonly errors?: readonly { readonly message: string }[]
}

interface Range {
  readonly from: number
  /** Undefined: to the tip and what is not in a block. */
  readonly to: number | undefined
}

/** A gateway's index and content, as far as drives need them. */
export class DriveIndex {
  constructor(
    readonly gatewayUrl: string,
    private readonly fetcher: FetchLike,
    private readonly pagesMax: number = pagesUsualMax,
  ) {}

  /**
   * All items with these tags, newest first, page by page. Rejects where there are more pages than it asks for (`too-large`), or
   * where the pages lead nowhere (`malformed-answer`): a list that leaves something out would look like a smaller drive.
   */
  async query(tags: Readonly<Record<string, string>>, owner?: string, range?: Range): Promise<ListedItem[]> {
    const variables = {
      tags: filtersOf(tags),
      ...(owner !== undefined && { owners: [owner] }),
      ...(range && { block: { min: range.from, ...(range.to !== undefined && { max: range.to }) } }),
    }
    const head = 'query($tags: [TagFilter!], $owners: [String!], $block: BlockFilter, $after: String)'
    const given = `tags: $tags, owners: $owners, block: $block, after: $after, first: ${pageSize}, sort: HEIGHT_DESC`
    const query = `${head} { transactions(${given}) ${pageFields} }`
    const items: ListedItem[] = []
    let after: string | undefined
    const known = new Set<string>()
    for (let page = 0; page < this.pagesMax; page++) {
      const { edges, pageInfo } = await this.#page(query, {
        ...variables,
        ...(after !== undefined && { after }),
      })
      items.push(...edges.map(({ node }) => node))
      if (!pageInfo.hasNextPage) return items
      after = edges.at(-1)?.cursor
      if (after === undefined || known.has(after)) {
        const found = `${this.gatewayUrl} says that more follows, and gives the same page or none`
        throw new ClientError('malformed-answer', found, 'use another gateway')
      }
      known.add(after)
    }
    const found = `${this.gatewayUrl} has more than ${this.pagesMax} pages of items of this drive`
    throw new ClientError('too-large', found, 'use another gateway, or make a snapshot of the drive')
  }

  /**
   * The item with these tags that came first into the chain, or undefined. One request, however many strangers have copied the
   * tags since.
   */
  async oldest(tags: Readonly<Record<string, string>>): Promise<ListedItem | undefined> {
    const query = `query($tags: [TagFilter!]) { transactions(tags: $tags, first: 1, sort: HEIGHT_ASC) ${pageFields} }`
    const { edges } = await this.#page(query, { tags: filtersOf(tags) })
    return edges[0]?.node
  }

  async #page(query: string, variables: object): Promise<Page> {
    const answer = await this.#query(query, variables)
    const page: unknown = answer.data?.transactions
    return isPage(page) ? page : this.#unanswered(answer)
  }

  async #query(query: string, variables: object): Promise<Answer> {
    const response = await this.fetcher(`${this.gatewayUrl}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    })
    if (response.status !== 200) throw this.#failed(response)
    return this.#answerOf(await this.#held(response, answerBytesMax, 'an answer to a query'))
  }

  #unanswered({ errors }: Answer): never {
    const found = `${this.gatewayUrl}: ${errors?.[0]?.message ?? 'no answer to a query'}`
    throw new ClientError('malformed-answer', found, 'use another gateway')
  }

  #answerOf(bytes: Uint8Array): Answer {
    const json = parsedJson(textOfBytes(bytes), answerBounds)
    if (json !== undefined) return (json ?? {}) as Answer
    const found = `${this.gatewayUrl} answers a query with no JSON, or too much`
    throw new ClientError('malformed-answer', found, 'check the address of the gateway')
  }

  #failed({ status, headers }: Response): ClientError {
    const isAbsent = status === 404 && !isUnsureAbsence(status, headers.get('retry-after'))
    const code = isAbsent ? 'not-found' : status === 429 ? 'rate-limited' : 'unavailable'
    return new ClientError(code, `${this.gatewayUrl} answered ${status}`, 'try again, or another gateway', {
      status,
    })
  }

  /** An item's content by id. Its caller proves it where it matters. */
  async ask(id: string): Promise<Response> {
    const response = await this.fetcher(`${this.gatewayUrl}/raw/${id}`, {})
    if (response.status === 200) return response
    await response.body?.cancel()
    throw this.#failed(response)
  }

  /** The same at once: for what is short. Encrypted content proves itself. */
  async content(id: string): Promise<Uint8Array> {
    return this.#held(await this.ask(id), contentBytesMax, id)
  }

  /** A body of at most so many bytes; the stated length is not relied on. */
  async #held(response: Response, bytesMax: number, what: string): Promise<Uint8Array> {
    const gathered = new Gathered()
    const isLong = Number(response.headers.get('content-length') ?? 0) > bytesMax
    const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader()
    while (!isLong && gathered.sizeBytes <= bytesMax) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) return gathered.bytes()
      gathered.add(value)
    }
    await reader?.cancel()
    const found = `${this.gatewayUrl}: ${what} has more than ${bytesMax} bytes`
    throw new ClientError('too-large', found, 'fetch it by verifiedFetch, or use another gateway')
  }

  /** The tags of an item. */
  async tagsOf(id: string): Promise<readonly TextTag[]> {
    const query = 'query($id: ID!) { transaction(id: $id) { tags { name value } } }'
    const answer = await this.#query(query, { id })
    if (answer.data?.transaction === null)
      throw new ClientError('not-found', `${id} is not indexed`, 'try again later')
    return answer.data?.transaction?.tags ?? this.#unanswered(answer)
  }

  /** Everything that an owner wrote into a drive: from snapshots, newer ones first, and live for what they leave out. */
  async driveItems(driveId: string, owner: string): Promise<DriveItems> {
    const snapshots = await this.query({ 'Drive-Id': driveId, 'Entity-Type': 'snapshot' }, owner)
    const items = new Map<string, ListedItem>()
    const metadata = new Map<string, string>()
    const problems: DriveProblem[] = []
    let open: Range[] = [{ from: 0, to: undefined }]
    for (const snapshot of snapshots) {
      const read = await this.#snapshot(snapshot)
      if (typeof read === 'string') {
        problems.push({ txId: snapshot.id, reason: read })
        continue
      }
      const { from, to } = read.range
      for (const { gqlNode: node, jsonMetadata } of read.entries) {
        const height = heightOf(node)
        const isOpen = open.some(
          (range) => height >= range.from && height <= (range.to ?? Number.POSITIVE_INFINITY),
        )
        if (!isOpen || height < from || height > to || node.owner.address !== owner || items.has(node.id))
          continue
        items.set(node.id, node)
        if (jsonMetadata !== null) metadata.set(node.id, jsonMetadata)
      }
      open = open.flatMap((range) => without(range, from, to))
    }
    for (const range of open) {
      const isAll = range.from === 0 && range.to === undefined
      for (const item of await this.query({ 'Drive-Id': driveId }, owner, isAll ? undefined : range))
        items.set(item.id, item)
    }
    return { items: [...items.values()], metadata, problems }
  }

  async #snapshot(
    item: ListedItem,
  ): Promise<{ range: { from: number; to: number }; entries: readonly SnapshotEntry[] } | string> {
    const [from, to] = ['Block-Start', 'Block-End'].map((name) =>
      Number(tagValueOf(item.tags, name) ?? Number.NaN),
    )
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return 'the snapshot names no blocks'
    try {
      const json = parsedJson(textOfBytes(await this.content(item.id)), snapshotBounds)
      const { txSnapshots } = (json ?? {}) as { txSnapshots?: unknown }
      if (!Array.isArray(txSnapshots)) return 'the snapshot has no list, or too long a one'
      return { range: { from: from as number, to: to as number }, entries: txSnapshots.filter(isEntry) }
    } catch (error) {
      if (error instanceof ClientError) return `the snapshot cannot be read: ${error.message}`
      throw error
    }
  }
}

function filtersOf(tags: Readonly<Record<string, string>>): { name: string; values: string[] }[] {
  return Object.entries(tags).map(([name, value]) => ({ name, values: [value] }))
}

interface SnapshotEntry {
  readonly gqlNode: ListedItem
  readonly jsonMetadata: string | null
}

function isEntry(value: unknown): value is SnapshotEntry {
  const { gqlNode, jsonMetadata } = (value ?? {}) as Partial<SnapshotEntry>
  return (typeof jsonMetadata === 'string' || jsonMetadata === null) && isListedItem(gqlNode)
}

function isPage(value: unknown): value is Page {
  const { edges, pageInfo } = (value ?? {}) as Partial<Page>
  return typeof pageInfo === 'object' && pageInfo !== null && Array.isArray(edges) && edges.every(isEdge)
}

function isEdge(value: unknown): boolean {
  const { cursor, node } = (value ?? {}) as { cursor?: unknown; node?: unknown }
  return typeof cursor === 'string' && isListedItem(node)
}

/** What is left of a range without the heights `from` to `to`. */
function without(range: Range, from: number, to: number): Range[] {
  const end = range.to ?? Number.POSITIVE_INFINITY
  if (to < range.from || from > end) return [range]
  const before = range.from < from ? [{ from: range.from, to: from - 1 }] : []
  return to < end ? [...before, { from: to + 1, to: range.to }] : before
}
