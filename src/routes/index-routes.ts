import type { Line } from '../attest/line.js'
import type { BandOffers, Offer } from '../bands/band-offer.js'
import { feedOf } from '../bands/feed.js'
import { plan, readConditions } from '../gateway/plan.js'
import type { Operations } from '../http/operation.js'
import { jsonType } from '../http/small-answer.js'
import type { Route } from '../serving/route.js'
import { Statements } from '../serving/statements.js'
import {
  type Ask,
  answerMalformed,
  answerMissing,
  answerRefusedPlan,
  BandBytes,
  fileShown,
  type IndexParts,
} from './band-bytes.js'

/** What is offered of our indexes: the signed document, the files of its bands, their torrents, and feeds of them. */
export function indexRoutes(parts: IndexParts): Route[] {
  const routes = new IndexRoutes(parts)
  const path = `${parts.vocabulary.pathPrefix}/indexes`
  const methods = ['GET', 'HEAD']
  return [
    {
      family: 'other',
      path,
      methods,
      about: [
        {
          path,
          summary: 'The signed document of the indexes that are given away',
          statuses: documentStatuses,
        },
      ],
      handle: (request, reply, first, exchange) => routes.document({ request, reply, first, exchange }),
    },
    {
      family: 'other',
      path: `${path}/`,
      methods,
      about: belowAbout(`${path}/`),
      handle(request, reply, first, exchange) {
        const ask = { request, reply, first, exchange }
        return routes.below(ask, request.path.slice(path.length + 1).split('/'))
      },
    },
  ]
}

const documentStatuses = [200, 304, 404, 412]
const fileStatuses = [200, 206, 304, 400, 402, 404, 412, 416, 429, 503]

function belowAbout(path: string): Operations {
  const octets = 'application/octet-stream'
  const torrent = 'application/x-bittorrent'
  const [free, paid] = [{ statuses: [...documentStatuses, 400] }, { statuses: fileStatuses, type: octets }]
  return [
    { path, summary: 'The signed document', ...free },
    { path: `${path}{index}/{band}/{file}`, summary: 'A file of a band by its name', ...paid },
    { path: `${path}blob/{sha256}`, summary: 'A file of a band by its digest', ...paid },
    { path: `${path}webseed/{seed}/{file}`, summary: 'A file of a torrent, for BEP 19', ...paid },
    {
      path: `${path}webseed/{seed}/.pad/{file}`,
      summary: 'The zeros between two files of a torrent',
      ...paid,
    },
    { path: `${path}{index}/{band}.torrent`, summary: 'The torrent of a band', ...free, type: torrent },
    {
      path: `${path}torrents/{sha256}.torrent`,
      summary: 'A torrent by its info hash',
      ...free,
      type: torrent,
    },
    { path: `${path}feed/{index}.xml`, summary: 'A feed of an index', ...free, type: 'application/rss+xml' },
  ]
}

/** The indexes in `/gateway/info`, while the document is valid. */
export function aboutIndexes(
  offers: BandOffers,
  pathPrefix: string,
  nowMs: number,
): { readonly manifestUrl: string; readonly names: readonly string[] } | undefined {
  const offer = offers.current()
  if (offer === undefined || offer.expiresMs < nowMs) return undefined
  return { manifestUrl: `${pathPrefix}/indexes`, names: offer.document.indexes.map(({ name }) => name) }
}

class IndexRoutes {
  readonly #statements: Statements
  readonly #bytes: BandBytes

  constructor(private readonly parts: IndexParts) {
    this.#statements = new Statements(parts)
    this.#bytes = new BandBytes(parts)
  }

  document(ask: Ask): void {
    const offer = this.parts.offers.current()
    if (offer === undefined) {
      answerMissing(ask)
      return
    }
    const about: Line[] = [[`${this.parts.vocabulary.gateway}Index-Publication`, '1']]
    this.#small(ask, { type: jsonType, body: offer.bytes, sha256: offer.sha256, about })
  }

  /** Fixed words are tried before names of indexes, and match only where the rest of the path has their form. */
  below(ask: Ask, segments: readonly string[]): void | Promise<void> {
    const offer = this.parts.offers.current()
    if (offer === undefined) return answerMissing(ask)
    const [head = '', second = '', third = '', fourth = ''] = segments
    if (segments.length > 4 || !segments.every(isSegment)) return answerMalformed(ask, 'Malformed path')
    if (head === 'webseed' && /^[0-9a-f]{16}$/.test(second)) {
      if (segments.length === 4 && third === '.pad') return this.#bytes.pad(ask, fourth)
      if (segments.length === 3) {
        return this.#bytes.file(ask, offer.bySeed.get(`${second}/${third}`), 'forever')
      }
    }
    if (segments.length === 3) {
      return this.#bytes.file(ask, offer.byName.get(`${head}/${second}/${third}`), 'again')
    }
    if (segments.length !== 2) return answerMissing(ask)
    if (head === 'blob' && /^[0-9a-f]{64}$/.test(second)) {
      return this.#bytes.file(ask, offer.byDigest.get(second), 'forever')
    }
    if (head === 'feed' && second.endsWith('.xml')) return this.#feed(ask, offer, second.slice(0, -4))
    if (second.endsWith('.torrent')) return this.#torrent(ask, offer, head, second.slice(0, -8))
    return answerMissing(ask)
  }

  /** `torrents/<infohash>.torrent`, and `<index>/<band>.torrent`. */
  #torrent(ask: Ask, offer: Offer, head: string, name: string): void | Promise<void> {
    const index = offer.document.indexes.find((one) => one.name === head)
    const ofBand = index?.bands.find(({ id }) => id === name)?.torrent?.infohashV1
    const infohash = ofBand ?? (head === 'torrents' && offer.torrents.has(name) ? name : undefined)
    return infohash === undefined ? answerMissing(ask) : this.#bytes.torrent(ask, infohash)
  }

  #feed(ask: Ask, offer: Offer, name: string): void {
    const index = offer.document.indexes.find((one) => one.name === name)
    if (index === undefined) {
      answerMissing(ask)
      return
    }
    const { origin, vocabulary } = this.parts
    const { gateway, pathPrefix } = vocabulary
    const places = origin === undefined ? { pathPrefix } : { pathPrefix, origin }
    const body = Buffer.from(feedOf(offer.document, index, places))
    const about: Line[] = [[`${gateway}Index-Feed`, offer.sha256]]
    this.#small(ask, { type: 'application/rss+xml; charset=utf-8', body, sha256: undefined, about })
  }

  /** A signed answer from memory, with a tag where its digest is known. */
  #small(
    ask: Ask,
    content: { type: string; body: Buffer; sha256: string | undefined; about: readonly Line[] },
  ): void {
    const { request, reply, first } = ask
    const { type, body, sha256, about } = content
    const tag = sha256 === undefined ? undefined : `"${sha256}"`
    const { ifNoneMatch, ifMatch, method } = readConditions(request)
    const conditions = { method, ifNoneMatch, ifMatch, range: undefined, ifRange: undefined }
    const decided = plan(conditions, { ...fileShown(body.length, tag), contentType: type })
    if (decided.variant === 'refused') {
      answerRefusedPlan(ask, decided)
      return
    }
    const digest =
      sha256 === undefined ? undefined : `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`
    const lines: Line[] = [
      ...(decided.variant === 'whole' ? [['Content-Type', type] as const] : []),
      ['Cache-Control', 'public, max-age=60'],
      ...(tag === undefined ? [] : [['ETag', tag] as const]),
      ...(digest === undefined ? [] : [['Content-Digest', digest] as const]),
      ...about,
    ]
    const { status } = decided
    const head = { status, block: this.#statements.block(request, first, status, lines) }
    if (status === 304) reply.endEmpty(head)
    else if (request.method === 'HEAD') reply.endEmpty(head, body.length)
    else reply.end(head, body)
  }
}

function isSegment(segment: string): boolean {
  return /^[A-Za-z0-9._-]{1,150}$/.test(segment) && !segment.includes('..')
}
