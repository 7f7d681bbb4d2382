import { z } from 'zod'
import type { Address } from '../../actor/address.js'
import { isRefusal } from '../../format/refusal.js'
import type { ModerationReply, ModerationRequest, Subject, SubjectKind } from '../../moderation/protocol.js'
import type { ModerationStore } from '../../moderation/store.js'
import { readSubject } from '../../moderation/subject.js'
import { type Asked, done, isTold, type Order, readBody, type Told, wrong } from './order.js'

/** Characters of a reason. */
const notesMax = 4096
const sourceMax = 256
const pageMax = 200

export interface ModerationOrderParts {
  readonly keeper: Address<ModerationRequest, ModerationReply>
  readonly store: ModerationStore
}

const object = { error: 'Must provide a JSON object' }
const ground = {
  source: z
    .string({ error: "'source' must be a non-empty string" })
    .trim()
    .min(1, "'source' must be a non-empty string")
    .max(sourceMax, "'source' exceeds maximum length"),
  notes: z.string({ error: "'notes' must be a string" }).max(notesMax, "'notes' exceeds maximum length"),
}
const dataShape = {
  id: z.string({ error: "'id' and 'hash' must be strings" }).nullish(),
  hash: z.string({ error: "'id' and 'hash' must be strings" }).nullish(),
}
const needsOne = { error: "Must provide 'id' or 'hash'" }
const hasOne = ({
  id,
  hash,
}: {
  id?: string | null | undefined
  hash?: string | null | undefined
}): boolean => (id ?? '') !== '' || (hash ?? '') !== ''
const name = z.string({ error: "'name' must be a non-empty string" })

// The subject is checked first, so that its errors are the ones reported.
const unblockData = z.object(dataShape, object).refine(hasOne, needsOne)
const grounds = z.object(ground, object)
const unblockName = z.object({ name }, object)

/** Orders to block and to release, and to read the list. */
export function moderationOrders(parts: ModerationOrderParts): Order[] {
  const { store } = parts
  return [
    {
      method: 'PUT',
      path: 'block-data',
      summary: 'Blocks content by id or hash',
      statuses: [200, 503],
      act: (asked) => decide(parts, asked, dataOf, true, 'Content blocked'),
    },
    {
      method: 'PUT',
      path: 'unblock-data',
      summary: 'Releases content',
      statuses: [200, 503],
      act: (asked) => decide(parts, asked, dataOf, false, 'Content unblocked'),
    },
    {
      method: 'PUT',
      path: 'block-name',
      summary: 'Blocks a name',
      statuses: [200, 503],
      act: (asked) => decide(parts, asked, nameOf, true, 'Name blocked'),
    },
    {
      method: 'PUT',
      path: 'unblock-name',
      summary: 'Releases a name',
      statuses: [200, 503],
      act: (asked) => decide(parts, asked, nameOf, false, 'Name unblocked'),
    },
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

async function decide(
  { keeper }: ModerationOrderParts,
  { body, by }: Asked,
  read: (body: unknown) => Subject | Told,
  blocks: boolean,
  message: string,
): Promise<Told> {
  const subject = read(body)
  if (isTold(subject)) return subject
  const why = blocks ? readBody(grounds, body) : undefined
  if (isTold(why)) return why
  const reply = await keeper.ask(
    why === undefined ? { kind: 'release', subject, by } : { kind: 'block', subject, ground: why, by },
  )
  if (!isRefusal(reply)) return done(message)
  return { status: 503, body: reply.message, retryAfterSeconds: 1 }
}

function dataOf(body: unknown): Subject | Told {
  const read = readBody(unblockData, body)
  if (isTold(read)) return read
  const id = read.id ?? ''
  return subjectOf(id === '' ? 'hash' : 'id', id === '' ? (read.hash ?? '') : id)
}

function nameOf(body: unknown): Subject | Told {
  const read = readBody(unblockName, body)
  return isTold(read) ? read : subjectOf('name', read.name)
}

function subjectOf(kind: SubjectKind, text: string): Subject | Told {
  const subject = readSubject(kind, text)
  return typeof subject === 'string' ? wrong(subject) : subject
}

/** `?before={sequence}&limit=&find={id, hash or name}`: the newest entries first. */
function page(store: ModerationStore, query: URLSearchParams): Told {
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
  if (!Number.isSafeInteger(before) || before < 0) return wrong("'before' must be a sequence number")
  const limit = limitOf(query)
  const entries = store.newest(before, limit)
  const next = entries.length === limit ? { next: entries.at(-1)?.sequence } : {}
  return { status: 200, body: { counts: store.counts(), entries, ...next } }
}

function limitOf(query: URLSearchParams): number {
  const limit = Number(query.get('limit') ?? 50)
  return Number.isInteger(limit) && limit > 0 ? Math.min(limit, pageMax) : 50
}
