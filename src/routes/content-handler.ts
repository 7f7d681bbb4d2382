import { type Id, parseId } from '../format/id.js'
import { ownText } from '../format/own-text.js'
import type { Delivery } from '../gateway/deliver.js'
import type { Locator } from '../gateway/locator.js'
import type { Described } from '../http/openapi.js'
import type { Operations } from '../http/operation.js'
import { answerText } from '../serving/exchange-answers.js'
import type { Exchange } from '../serving/request-exchange.js'
import type { RequestLog } from '../serving/request-log.js'
import type { ManifestHandler, ManifestRequest } from './manifest-handler.js'
import type { TextHandler } from './text-handler.js'

/** A path that names content. */
export interface Target {
  /** `text`: the bytes as base64url. */
  readonly kind: 'data' | 'raw' | 'frame' | 'text'
  /** 43 characters as the client wrote them. */
  readonly text: string
  /** Undefined where they are not canonical. */
  readonly id: Id | undefined
  /** What stands behind the id's slash, percent-encoding untouched; undefined where there is no slash. */
  readonly rest: string | undefined
}

const idShape = /^[A-Za-z0-9_-]{43}$/
const framePrefix = '/local/farcaster/frame/'
const rawPrefix = '/raw/'
const nodePrefix = '/tx/'
/** The path behind the id as on nodes: `data` is base64url text, `data.{ext}` the bytes. */
const nodeData = /^data(\.[^/]*)?\/?$/i

/**
 * The content that `path` names: `/{id}[/...]`, `/raw/{id}[/]`, `/local/farcaster/frame/{id}[/]`, `/tx/{id}/data[.ext][/]`;
 * words in any case.
 */
export function targetOf(path: string): Target | undefined {
  const plain = split(path, 1)
  if (plain !== undefined) return { kind: 'data', text: plain.text, id: plain.id, rest: plain.rest }
  if (startsWith(path, rawPrefix)) return only('raw', split(path, rawPrefix.length))
  if (startsWith(path, nodePrefix)) return nodeTarget(split(path, nodePrefix.length))
  if (startsWith(path, framePrefix)) return only('frame', split(path, framePrefix.length))
  return undefined
}

function split(path: string, start: number): Omit<Target, 'kind'> | undefined {
  const end = start + 43
  if (path.length < end || (path.length > end && path.charCodeAt(end) !== 47)) return undefined
  // The id may be kept for long, a path never is.
  const text = ownText(path.slice(start, end))
  const id = parseId(text)
  if (id === undefined && !idShape.test(text)) return undefined
  return { text, id, rest: path.length === end ? undefined : path.slice(end + 1) }
}

function startsWith(path: string, prefix: string): boolean {
  return path.length > prefix.length && path.slice(0, prefix.length).toLowerCase() === prefix
}

/** These routes have no paths below the id. */
function only(kind: Target['kind'], found: ReturnType<typeof split>): Target | undefined {
  return found === undefined || (found.rest ?? '') !== ''
    ? undefined
    : { kind, text: found.text, id: found.id, rest: found.rest }
}

const statuses = [200, 206, 302, 304, 400, 402, 403, 404, 416, 429, 451, 499, 502, 504]
const type = '*/*'

/** What each kind of path is for. */
const about: Readonly<Record<Target['kind'], Operations>> = {
  data: [
    {
      path: '/{id}',
      summary: 'Content by id, through a manifest',
      statuses: [...statuses, 301, 308],
      type,
    },
    { path: '/{id}/{path}', summary: 'What a manifest has at a path', statuses, type },
  ],
  raw: [
    { path: '/raw/{id}', summary: 'Content by id, manifests as they are', statuses, type },
    { path: '/tx/{id}/data.{ext}', summary: 'The data of a transaction, with any ending', statuses, type },
  ],
  text: [
    {
      path: '/tx/{id}/data',
      summary: 'The data of a transaction, base64url',
      statuses: [200, 400, 402, 404, 429, 451, 499, 502, 504],
      type: 'text/plain',
    },
  ],
  frame: [
    {
      path: '/local/farcaster/frame/{id}',
      summary: 'Content by id, by POST too',
      statuses: [...statuses, 301, 308],
      type,
    },
  ],
}

/** Every path of content by id. */
export function contentOperations(): Described[] {
  const kinds = Object.entries(about) as [Target['kind'], Operations][]
  return kinds.flatMap(([kind, operations]) =>
    operations.map((one) => ({ methods: methodsOf(kind), ...one })),
  )
}

/** Nodes accept ids that are not canonical; here they are no ids, because the block list knows the canonical one only. */
function nodeTarget(found: ReturnType<typeof split>): Target | undefined {
  if (found === undefined) return undefined
  const what = nodeData.exec(found.rest ?? '')
  if (what === null && found.id !== undefined) return undefined
  return { kind: what?.[1] === undefined ? 'text' : 'raw', text: found.text, id: found.id, rest: found.rest }
}

/** Methods of a content route. */
export function methodsOf(kind: Target['kind']): readonly string[] {
  return kind === 'frame' ? ['GET', 'HEAD', 'POST'] : ['GET', 'HEAD']
}

/** Answers everything that names content by id. */
export class ContentHandler {
  constructor(
    private readonly requestLog: RequestLog,
    private readonly locator: Locator,
    private readonly delivery: Delivery,
    private readonly manifestHandler: ManifestHandler,
    private readonly texts: TextHandler,
  ) {}

  handle(exchange: Exchange, target: Target): void {
    const { id } = target
    if (id === undefined) {
      answerText(
        this.requestLog,
        exchange,
        { status: 400, text: `Invalid ID: ${target.text}` },
        { fault: 'client' },
      )
      return
    }
    if (target.kind === 'text') {
      this.texts.handle(exchange, id)
      return
    }
    if (target.kind === 'raw') {
      this.delivery.serve(exchange, id, this.locator.locate(exchange, id))
      return
    }
    this.#resolved(exchange, {
      id,
      rest: target.rest,
      redirect: target.kind === 'data' && target.rest === undefined,
    })
  }

  /** Answers with `id`, or with a path of its manifest, where the root of the host is that content. */
  below(exchange: Exchange, id: Id, rest: string): void {
    this.#resolved(exchange, { id, rest, redirect: false })
  }

  /** Content, or the content of a manifest's path. Other content is served whatever the path behind its id is. */
  #resolved(exchange: Exchange, wanted: ManifestRequest): void {
    const { id } = wanted
    const found = this.locator.locate(exchange, id)
    if (found.at !== 'nowhere' && this.manifestHandler.isManifest(found.entry.contentType)) {
      this.manifestHandler.handle(exchange, wanted, found)
      return
    }
    this.delivery.serve(exchange, id, found, (opened) => this.manifestHandler.take(exchange, wanted, opened))
  }
}
