import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { parseId } from '../format/id.js'
import { parseName } from '../names/name.js'
import type { Subject, SubjectKind } from './moderation-messages.js'

/** A label of the domain name system has 63 characters at most. */
const labelMax = 63

/** A name without undername: longer labels are sandbox labels, never names. */
const nameMax = 51

/** Letters of any script, because lists of others may have them; no blanks, dots or slashes. */
const nameShape = /^[^\s./\\\p{Cc}]+$/u

/**
 * The subject spelled by `text`, or in plain words what is wrong with it. Hashes may also come as 64 hexadecimal digits; names
 * count in lower case.
 */
export function readSubject(kind: SubjectKind, text: string): Subject | string {
  if (kind === 'name') return readName(text)
  if (kind === 'hash' && /^[0-9a-f]{64}$/i.test(text)) {
    return { kind, key: encodeBase64url(Buffer.from(text, 'hex')) }
  }
  const key = parseId(text)
  return key === undefined ? `'${kind}' must be 43 characters of base64url` : { kind, key }
}

function readName(text: string): Subject | string {
  const key = text.trim().toLowerCase()
  if (key === '') return "'name' must be a non-empty string"
  if (key.length > labelMax || (key.length > nameMax && !key.includes('_'))) {
    return "'name' exceeds maximum length"
  }
  return nameShape.test(key) ? { kind: 'name', key } : "'name' must be a single label"
}

/**
 * The name as `readSubject` reads it, where a request can ask for it: to block another one would protect nobody. What was blocked
 * before stays readable, so that it can be released.
 */
export function readPossibleName(text: string): Subject | string {
  const subject = readName(text)
  if (typeof subject === 'string' || parseName(subject.key) !== undefined) return subject
  return "'name' cannot exist: names have a-z, 0-9 and -, and _ between undername and name (other scripts as punycode, xn--)"
}

/** The bytes under which a subject is kept: 32 of an id or hash, UTF-8 of a name. */
export function subjectKey({ kind, key }: Subject): Uint8Array {
  return kind === 'name' ? Buffer.from(key) : (decodeBase64url(key) ?? new Uint8Array(0))
}

/** The subject kept under these bytes. */
export function subjectOf(kind: SubjectKind, bytes: Uint8Array): Subject {
  return { kind, key: kind === 'name' ? Buffer.from(bytes).toString('utf8') : encodeBase64url(bytes) }
}
