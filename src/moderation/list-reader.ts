import type { Subject, SubjectKind } from './moderation-messages.js'
import { readSubject } from './subject.js'

/** The subject of a line in a list, or the reason why it is not understood. */
export type ListLine = Subject | string

/**
 * Reads public block lists: one entry a line, comments behind `#`, blank lines skipped. An entry is an id (43 characters of
 * base64url), a SHA-256 in hexadecimal, `hash:` and a base64url SHA-256, `name:` and a name, or a name by itself. Only the
 * first word of a line counts, and the first field of a comma-separated one. A line in JSON is an object with `id`, `hash` or
 * `name`, or a text.
 */
export async function* readLines(lines: AsyncIterable<string>): AsyncGenerator<ListLine> {
  for await (const line of lines) {
    const text = line.replace(/^\uFEFF/, '').trim()
    if (text === '' || text.startsWith('#')) continue
    const json = /^[[{"]/.test(text) ? jsonOf(text.replace(/,$/, '')) : undefined
    if (json !== undefined) yield* entriesOf(json)
    else if (!/^[[\]{}],?$/.test(text)) yield readWord(text.split(/[\s,;#]/, 1)[0] ?? '')
  }
}

/** A whole document of JSON: a list, or an object of lists, of texts and of objects with `id`, `hash` or `name`. */
export function* readDocument(json: unknown): Generator<ListLine> {
  yield* entriesOf(json)
}

function* entriesOf(json: unknown): Generator<ListLine> {
  if (typeof json === 'string') yield readWord(json.trim())
  else if (Array.isArray(json)) for (const one of json) yield* entriesOf(one)
  else if (typeof json === 'object' && json !== null) yield* objectEntries(json as Record<string, unknown>)
  else yield `not an entry: ${String(json).slice(0, 60)}`
}

function* objectEntries(json: Record<string, unknown>): Generator<ListLine> {
  const kinds: readonly SubjectKind[] = ['id', 'hash', 'name']
  const named = kinds.filter((kind) => typeof json[kind] === 'string')
  for (const kind of named) yield readSubject(kind, String(json[kind]))
  if (named.length > 0) return
  const lists = Object.values(json).filter((value) => typeof value === 'object' && value !== null)
  if (lists.length === 0) yield "an object without 'id', 'hash' or 'name'"
  for (const list of lists) yield* entriesOf(list)
}

/** The subject that a word names; a kind and a colon may stand in front of it. */
export function readWord(word: string): ListLine {
  const [, kind, rest] = /^(id|hash|name):(.+)$/s.exec(word) ?? []
  if (kind !== undefined && rest !== undefined) return readSubject(kind as SubjectKind, rest)
  if (/^[0-9a-f]{64}$/i.test(word)) return readSubject('hash', word)
  return /^[\w-]{43}$/.test(word) ? readSubject('id', word) : readSubject('name', word)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
