import { encodeBase64url } from '../format/base64url.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import { headersOfPayload } from '../format/media-type.js'
import { openEnvironment } from '../store/lmdb.js'
import { type Attributes, attributesOf, type Header, type ItemPlace } from './attributes.js'
import type { Generations } from './generations.js'
import type { ChainIndex } from './index-reader.js'
import { betterPlace } from './merge.js'
import { LmdbCatalog } from './reader.js'
import type { Row } from './row.js'

/** Number of the signature scheme of transactions that say none: RSA-PSS with SHA-256. */
const transactionScheme = 1
const none = new Uint8Array(0)

/**
 * What was learned while serving, together with what the chain's index says. The index knows better where an
 * item is and in which block; what was learned knows better which bytes are on disk.
 */
export class IndexedCatalog extends LmdbCatalog {
  /** `index` reads the environment in folder `path` too. */
  constructor(
    path: string,
    generations: Generations,
    private readonly index: ChainIndex,
    open = openEnvironment,
  ) {
    super(path, generations, open)
  }

  override attributes(id: Id): Attributes | undefined {
    const known = super.attributes(id)
    const { index } = this
    const indexed = index.known(() => {
      const row = index.row(idBytes(id))
      return row === undefined ? undefined : rowAttributes(index, row)
    })
    return indexed === undefined ? known : together(known, indexed)
  }
}

/** What the index says of a transaction or item; no digest, nothing verified. */
export function rowAttributes(index: ChainIndex, row: Row): Attributes {
  const header = headerOf(index, row)
  const { size, height, isItem } = row
  const isTransaction: true | undefined = isItem ? undefined : true
  const place = placeOf(index, row)
  const facts = { ...headersOfPayload(header.tags), height, isTransaction, place, header }
  return attributesOf({ id: idOfBytes(row.id), size, verified: false, trusted: false }, facts)
}

function together(known: Attributes | undefined, indexed: Attributes): Attributes {
  if (known === undefined) return indexed
  const { height: _height, ...rest } = known
  const place = betterPlace(known.place, indexed.place)
  return {
    ...indexed,
    ...rest,
    // The size belongs to the bytes whose digest is known.
    size: known.digest === undefined ? indexed.size : known.size,
    ...(indexed.height === undefined ? {} : { height: indexed.height }),
    ...(place === undefined ? {} : { place }),
  }
}

function headerOf(index: ChainIndex, row: Row): Header {
  return {
    signatureType: row.signatureType ?? transactionScheme,
    signature: row.signature ?? none,
    owner: index.ownerKey(row.owner) ?? none,
    ownerAddress: encodeBase64url(row.owner),
    target: row.recipient,
    anchor: row.anchor,
    tags: row.tags,
  }
}

/** Where an item is; undefined for transactions, and for items whose bundles are not all in the index. */
function placeOf(index: ChainIndex, row: Row): ItemPlace | undefined {
  const { place } = row
  const path = place === undefined ? undefined : index.pathOf(row)
  const [root] = path ?? []
  const parent = path?.at(-1)
  if (place === undefined || path === undefined || root === undefined || parent === undefined)
    return undefined
  if (root.isItem) return undefined
  return {
    rootId: idOfBytes(root.id),
    parentId: idOfBytes(parent.id),
    path: path.map(({ id }) => idOfBytes(id)),
    rootItemOffset: place.rootItemOffset,
    parentItemOffset: place.parentItemOffset,
    itemSize: place.headerSize + row.size,
    headerSize: place.headerSize,
    isIndexed: true,
    ...(row.isUnjudged === true ? {} : { isSigned: true }),
  }
}
