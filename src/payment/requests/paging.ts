import { plainAnswer } from './payment-route.js'

export const wrongLimit = plainAnswer(400, 'Invalid limit: a whole number from 1 to 100')
export const wrongCursor = plainAnswer(400, 'Invalid cursor')

/** The requested length of a page; undefined: it is no number from 1 to 100. */
export function limitOf(query: URLSearchParams, usual: number): number | undefined {
  const text = query.get('limit') ?? String(usual)
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  return limit < 1 || limit > 100 ? undefined : limit
}

/** Where lists go on: opaque to clients, the places of the last entries. */
export function paged(places: readonly string[] | undefined): {
  readonly hasMore: boolean
  readonly cursor: string | null
} {
  const cursor = places === undefined ? null : Buffer.from(JSON.stringify(places)).toString('base64url')
  return { hasMore: cursor !== null, cursor }
}

/** The places of so many lists in a cursor; '' where none is given. Undefined: it is no cursor. */
export function cursorPlaces(query: URLSearchParams, count: number): readonly string[] | undefined {
  const cursor = query.get('cursor') ?? ''
  if (cursor === '') return Array.from({ length: count }, () => '')
  const places = jsonOf(cursor)
  const isList = Array.isArray(places) && places.length === count
  return isList && places.every((place) => typeof place === 'string' && place.length <= 400)
    ? places
    : undefined
}

/** JSON in base64url; undefined where there is none. */
export function jsonOf(cursor: string): unknown {
  if (cursor.length > 2000) return undefined
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
