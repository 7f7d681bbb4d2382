import type { Line } from '../attest/line.js'
import { digestLines } from '../attest/trust-headers.js'
import type { RootRecord } from '../bands/root-record.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Catalog } from '../catalog/catalog-messages.js'
import { type Id, idOfBytes, parseId } from '../format/id.js'
import { answerBlocked } from '../gateway/blocked-answer.js'
import type { Guard } from '../gateway/guard.js'
import type { Reply, Request } from '../http/exchange.js'
import { answerSmall, jsonType, noStore, textType } from '../http/small-answer.js'
import { sha256 } from '../proof/digest.js'
import type { Route } from '../serving/route.js'
import { isUnchanged, type StatementParts, Statements } from '../serving/statements.js'

export interface OffsetsParts extends StatementParts {
  readonly catalog: Pick<Catalog, 'attributes'>
  readonly guard?: Guard
  /** Looks into the bands on this machine only. */
  readonly bands?: { here(id: Id): RootRecord | undefined }
}

/** `GET|HEAD {prefix}/offsets/{id}`: where a data item lies in its root transaction, as far as it is known here. */
export function offsetsRoute(parts: OffsetsParts): Route {
  const { vocabulary, catalog, guard, bands } = parts
  const statements = new Statements(parts)
  const path = `${vocabulary.pathPrefix}/offsets/`
  return {
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
    about: [
      {
        path: `${path}{id}`,
        summary: 'Where a data item lies in its root transaction',
        statuses: [200, 304, 400, 404, 451],
      },
    ],
    handle(request: Request, reply: Reply, first: string): void {
      const id = parseId(request.path.slice(path.length).replace(/\/$/, ''))
      if (id === undefined) {
        const wrong = { status: 400, type: textType, lines: noStore, body: 'Must provide a valid data ID' }
        answerSmall(request, reply, first, wrong)
        return
      }
      if (guard?.blocksKnown(id) === true) {
        answerBlocked(request, reply, first, guard, id)
        return
      }
      const attributes = catalog.attributes(id)
      const known = attributes === undefined ? undefined : offsetsOf(attributes)
      const offsets = known ?? offsetsInBand(bands?.here(id))
      if (offsets === undefined) {
        const lines = '\r\nCache-Control: public, max-age=60, must-revalidate'
        const missing = { status: 404, type: textType, lines, body: 'Offsets not found' }
        answerSmall(request, reply, first, missing)
        return
      }
      // Bands list items whose bundles are not in the catalog, so their bundles are checked here.
      if (guard?.blocksInside([offsets.rootTxId, ...(offsets.path ?? [])]) === true) {
        answerBlocked(request, reply, first, guard, id)
        return
      }
      const body = Buffer.from(JSON.stringify(offsets))
      const digest = sha256(body)
      const unchanged = isUnchanged(request, digest)
      const status = unchanged ? 304 : 200
      const lines: Line[] = [
        ...(unchanged ? [] : [['Content-Type', jsonType] as const]),
        ['Cache-Control', 'public, max-age=30'],
        [`${vocabulary.gateway}Root-Transaction-Id`, offsets.rootTxId],
        // A 304 has no content, so it has no Content-Digest.
        ...digestLines(digest, unchanged ? undefined : 'Content-Digest', vocabulary).slice(1),
      ]
      const head = { status, block: statements.block(request, first, status, lines) }
      if (unchanged) reply.endEmpty(head)
      else if (request.method === 'HEAD') reply.endEmpty(head, body.length)
      else reply.end(head, body)
    },
  }
}

interface Offsets {
  readonly rootTxId: Id
  readonly path?: readonly Id[]
  readonly rootOffset?: number
  readonly rootDataOffset?: number
  readonly contentType?: string
  readonly size?: number
  readonly dataSize?: number
}

/** The offsets that a band lists: without a type, and without offsets where its builder had none. */
function offsetsInBand(place: RootRecord | undefined): Offsets | undefined {
  if (place === undefined) return undefined
  const [rootTxId, ...inner] = place.path.map(idOfBytes)
  const { itemOffset, dataOffset, itemSize } = place
  if (rootTxId === undefined) return undefined
  const payload = itemOffset === undefined || dataOffset === undefined ? undefined : dataOffset - itemOffset
  return {
    rootTxId,
    ...(inner.length === 0 ? {} : { path: [rootTxId, ...inner] }),
    ...(itemOffset === undefined ? {} : { rootOffset: itemOffset }),
    ...(dataOffset === undefined ? {} : { rootDataOffset: dataOffset }),
    ...(itemSize === undefined ? {} : { size: itemSize }),
    ...(itemSize === undefined || payload === undefined ? {} : { dataSize: itemSize - payload }),
  }
}

function offsetsOf({ place, contentType, size }: Attributes): Offsets | undefined {
  if (place === undefined) return undefined
  const { rootId, path, rootItemOffset, headerSize, itemSize } = place
  return {
    rootTxId: rootId,
    ...(path.length === 0 ? {} : { path }),
    rootOffset: rootItemOffset,
    rootDataOffset: rootItemOffset + headerSize,
    ...(contentType === undefined ? {} : { contentType }),
    size: itemSize,
    dataSize: size,
  }
}
