import type { Address } from '../../actor/mailbox-address.js'
import { isRefusal } from '../../format/refusal.js'
import type {
  ModerationReply,
  ModerationRequest,
  Subject,
  SubjectKind,
} from '../../moderation/moderation-messages.js'
import type { ModerationStore } from '../../moderation/moderation-store.js'
import { readPossibleName, readSubject } from '../../moderation/subject.js'
import {
  done,
  isOrderAnswer,
  malformedOrder,
  type Order,
  type OrderAnswer,
  type OrderCall,
  readBody,
} from './order.js'

const pageMax = 200

export interface ModerationOrderParts {
  readonly keeper: Address<ModerationRequest, ModerationReply>
  readonly store: ModerationStore
}

/** Loaded with the first order: zod takes 6.7 MB of each edge thread, and most never get one. */
const shapes = () => import('./moderation-shapes.js')

/** Orders to block and to release, and to read the list. */
export function moderationOrders(parts: ModerationOrderParts): Order[] {
  const { store } = parts
  return [
    decision(parts, 'block-data', 'Blocks content by id or hash', dataOf, 'Content blocked'),
    decision(parts, 'unblock-data', 'Releases content', dataOf, 'Content unblocked'),
    decision(parts, 'block-name', 'Blocks a name', possibleNameOf, 'Name blocked'),
    decision(parts, 'unblock-name', 'Releases a name', nameOf, 'Name unblocked'),
    {
      method: 'GET',
      path: 'moderation',
      summary: 'What is blocked, the newest first',
      statuses: [200],
      queryNames: ['before', 'limit', 'find'],
      act: ({ query }) => page(store, query),
    },
    {
      method: 'GET',
      path: 'moderation/audit',
      summary: 'Who decided what',
      statuses: [200],
      queryNames: ['limit'],
      act: ({ query }) => ({ status: 200, body: { lines: store.audit(limitOf(query)) } }),
    },
  ]
}

/** An order about one subject. `read` takes the subject from the body; `message` is the answer where it was done. */
function decision(
  parts: ModerationOrderParts,
  path: 'block-data' | 'unblock-data' | 'block-name' | 'unblock-name',
  summary: string,
  read: (body: unknown) => Promise<Subject | OrderAnswer>,
  message: string,
): Order {
  const blocks = path.startsWith('block')
  const act = (call: OrderCall) => decide(parts, call, read, blocks, message)
  return { method: 'PUT', path, summary, statuses: [200, 503], act }
}

async function decide(
  { keeper }: ModerationOrderParts,
  { body, by }: OrderCall,
  read: (body: unknown) => Promise<Subject | OrderAnswer>,
  blocks: boolean,
  message: string,
): Promise<OrderAnswer> {
  const subject = await read(body)
  if (isOrderAnswer(subject)) return subject
  const { grounds } = await shapes()
  const why = blocks ? readBody(grounds, body) : undefined
  if (isOrderAnswer(why)) return why
  const reply = await keeper.ask(
    why === undefined ? { kind: 'release', subject, by } : { kind: 'block', subject, ground: why, by },
  )
  if (!isRefusal(reply)) return done(message)
  return { status: 503, body: reply.message, retryAfterSeconds: 1 }
}

async function dataOf(body: unknown): Promise<Subject | OrderAnswer> {
  const read = readBody((await shapes()).unblockData, body)
  if (isOrderAnswer(read)) return read
  const id = read.id ?? ''
  return subjectOf(id === '' ? 'hash' : 'id', id === '' ? (read.hash ?? '') : id)
}

async function nameOf(body: unknown): Promise<Subject | OrderAnswer> {
  const read = readBody((await shapes()).unblockName, body)
  return isOrderAnswer(read) ? read : subjectOf('name', read.name)
}

async function possibleNameOf(body: unknown): Promise<Subject | OrderAnswer> {
  const read = readBody((await shapes()).unblockName, body)
  return isOrderAnswer(read) ? read : orWrong(readPossibleName(read.name))
}

const subjectOf = (kind: SubjectKind, text: string): Subject | OrderAnswer => orWrong(readSubject(kind, text))

function orWrong(subject: Subject | string): Subject | OrderAnswer {
  return typeof subject === 'string' ? malformedOrder(subject) : subject
}

/** `?before={sequence}&limit=&find={id, hash or name}`: the newest entries first. */
function page(store: ModerationStore, query: URLSearchParams): OrderAnswer {
  const find = (query.get('find') ?? '').trim()
  if (find !== '') {
    const kinds: readonly SubjectKind[] = ['id', 'hash', 'name']
    const entries = kinds.flatMap((kind) => {
      const subject = readSubject(kind, find)
      const blocked = typeof subject === 'string' ? undefined : store.find(subject)
      return blocked ?? []
    })
    return { status: 200, body: { counts: store.counts(), entries } }
  }
  const before = Number(query.get('before') ?? Number.MAX_SAFE_INTEGER)
  if (!Number.isSafeInteger(before) || before < 0) return malformedOrder("'before' must be a sequence number")
  const limit = limitOf(query)
  const entries = store.newest(before, limit)
  const next = entries.length === limit ? { next: entries.at(-1)?.sequence } : {}
  return { status: 200, body: { counts: store.counts(), entries, ...next } }
}

function limitOf(query: URLSearchParams): number {
  const limit = Number(query.get('limit') ?? 50)
  return Number.isInteger(limit) && limit > 0 ? Math.min(limit, pageMax) : 50
}
