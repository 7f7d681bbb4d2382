import type { Line } from '../attest/line.js'
import { digestLines } from '../attest/trust-headers.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Catalog } from '../catalog/protocol.js'
import { parseId } from '../format/id.js'
import type { Reply, Request } from '../http/exchange.js'
import { sha256 } from '../proof/digest.js'
import { answerBlocked, answerSmall, jsonType, noStore, textType } from './answer.js'
import type { Guard } from './guard.js'
import type { Route } from './parts.js'
import { type StatementParts, Statements } from './statements.js'

export interface OffsetsParts extends StatementParts {
  readonly catalog: Pick<Catalog, 'attributes'>
  readonly guard?: Guard
}

/** `GET|HEAD {prefix}/offsets/{id}`: where a data item lies in its root transaction, as far as it is known here. */
export function offsetsRoute(parts: OffsetsParts): Route {
  const { vocabulary, catalog, guard } = parts
  const statements = new Statements(parts)
  const path = `${vocabulary.pathPrefix}/offsets/`
  return {
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
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
      const offsets = attributes === undefined ? undefined : offsetsOf(attributes)
      if (attributes?.place === undefined || offsets === undefined) {
        const lines = '\r\nCache-Control: public, max-age=60, must-revalidate'
        const missing = { status: 404, type: textType, lines, body: 'Offsets not found' }
        answerSmall(request, reply, first, missing)
        return
      }
      const body = Buffer.from(JSON.stringify(offsets))
      const lines: Line[] = [
        ['Content-Type', jsonType],
        ['Cache-Control', 'public, max-age=30'],
        [`${vocabulary.gateway}Root-Transaction-Id`, attributes.place.rootId],
        ...digestLines(sha256(body), 'Content-Digest', vocabulary).slice(1),
      ]
      const head = { status: 200, block: statements.block(request, first, 200, lines) }
      if (request.method === 'HEAD') reply.endEmpty(head, body.length)
      else reply.end(head, body)
    },
  }
}

function offsetsOf({ place, contentType, size }: Attributes): object | undefined {
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
