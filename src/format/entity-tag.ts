import { skipBlanks, trimBlanks } from './blank.js'

/** An entity tag (RFC 9110 section 8.8.3). `opaque` is what stands between the quotes. */
export interface EntityTag {
  readonly weak: boolean
  readonly opaque: string
}

/** What If-Match and If-None-Match may say: any representation at all, or one of these. */
export type EntityTags = '*' | readonly EntityTag[]

/** Etagc is %x21 / %x23-7E / obs-text. */
const entityTag = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"/y

/** Longer lists are refused: no cache keeps so many versions of one resource. */
const tagsMax = 1000

/**
 * Reads If-Match or If-None-Match: `*` or a list of entity tags; empty list elements are skipped (RFC 9110 section
 * 5.6.1). Several field lines are to be joined with a comma first. Undefined: malformed, which means that nothing
 * matches.
 */
export function parseEntityTags(field: string): EntityTags | undefined {
  if (trimBlanks(field) === '*') return '*'
  const tags: EntityTag[] = []
  let at = skipBlanks(field, 0)
  while (at < field.length) {
    if (field[at] !== ',') {
      entityTag.lastIndex = at
      const found = entityTag.exec(field)
      if (found === null || tags.length === tagsMax) return undefined
      tags.push({ weak: found[1] !== undefined, opaque: found[2] ?? '' })
      at = skipBlanks(field, entityTag.lastIndex)
      if (at < field.length && field[at] !== ',') return undefined
    }
    at = skipBlanks(field, at + 1)
  }
  return tags.length === 0 ? undefined : tags
}

/** Reads a single entity tag, as If-Range has it, or undefined where the text is none. */
export function parseEntityTag(field: string): EntityTag | undefined {
  const tags = parseEntityTags(field)
  return tags === undefined || tags === '*' || tags.length !== 1 || field.includes(',') ? undefined : tags[0]
}

/** Weak comparison (If-None-Match): the opaque parts are equal. */
export function matchesWeakly(given: EntityTags, current: EntityTag): boolean {
  return given === '*' || given.some((tag) => tag.opaque === current.opaque)
}

/** Strong comparison (If-Match, If-Range): the opaque parts are equal and neither is weak. */
export function matchesStrongly(given: EntityTags, current: EntityTag): boolean {
  if (given === '*') return true
  return !current.weak && given.some((tag) => !tag.weak && tag.opaque === current.opaque)
}
