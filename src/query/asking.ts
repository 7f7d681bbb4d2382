import { GraphQLError } from 'graphql'
import type { Selection, TagSelection } from '../catalog/selection.js'
import { decodeBase64url } from '../format/base64url.js'
import { idBytes, parseId } from '../format/id.js'
import type { QueryLimits } from './query-limits.js'

/** Arguments as GraphQL passes them; null means absent, except for `bundledIn`. */
export interface TransactionsArguments {
  readonly ids?: readonly string[] | null
  readonly owners?: readonly string[] | null
  readonly recipients?: readonly string[] | null
  readonly tags?: readonly TagArgument[] | null
  readonly bundledIn?: readonly string[] | null
  readonly parent?: readonly string[] | null
  readonly block?: RangeArgument | null
  readonly ingested_at?: RangeArgument | null
  readonly first?: number | null
  readonly after?: string | null
  readonly sort?: 'HEIGHT_ASC' | 'HEIGHT_DESC' | null
}

export interface TagArgument {
  readonly name: string
  readonly values: readonly string[]
  readonly op?: 'EQ' | 'NEQ' | null
  readonly match?: 'EXACT' | 'WILDCARD' | null
}

export interface RangeArgument {
  readonly min?: number | null
  readonly max?: number | null
}

/** An error of the query itself: the client must change it. */
export function queryError(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } })
}

function within(list: readonly unknown[], max: number, name: string): void {
  if (list.length > max) throw queryError(`${name} may have at most ${max} entries`)
}

/** Ids or addresses as bytes. What is not 32 bytes in base64url cannot be in the index and is left out. */
function bytesOf(list: readonly string[], limits: QueryLimits, name: string): Uint8Array[] {
  within(list, limits.listMax, name)
  return list.flatMap((text) => {
    const id = parseId(text)
    return id === undefined ? [] : [idBytes(id)]
  })
}

/** Recipients of old transactions may be shorter than an address. */
function targetsOf(list: readonly string[], limits: QueryLimits): Uint8Array[] {
  within(list, limits.listMax, 'recipients')
  return list.flatMap((text) => {
    const bytes = decodeBase64url(text)
    return bytes === undefined || bytes.length === 0 || bytes.length > 64 ? [] : [bytes]
  })
}

/** An empty list is no filter: clients pass the user's choice, which may be empty. */
function some<Entry>(list: readonly Entry[] | null | undefined): readonly Entry[] | undefined {
  return list === null || list === undefined || list.length === 0 ? undefined : list
}

/** The selections that one tag filter stands for. Throws a GraphQLError where it is wrong. */
function tagSelections({ name, values, op, match }: TagArgument, limits: QueryLimits): TagSelection[] {
  within(values, limits.listMax, 'values')
  const bytes = (text: string): Uint8Array => Buffer.from(text, 'utf8')
  if (match !== 'WILDCARD') {
    return [{ name: bytes(name), values: values.map(bytes), match: op === 'NEQ' ? 'isNot' : 'is' }]
  }
  if (op === 'NEQ') throw queryError('NEQ cannot be used together with WILDCARD')
  const starts = values.map((value) => {
    const star = value.indexOf('*')
    if (star !== value.length - 1) throw queryError('a WILDCARD value must end in * and have no other *')
    return bytes(value.slice(0, -1))
  })
  return [{ name: bytes(name), values: starts, match: 'starts' }]
}

/** Heights of a filter: a lower bound of 0 is no bound. Throws a GraphQLError on negative ones. */
export function heightsOf(range: RangeArgument | null | undefined): {
  minHeight?: number
  maxHeight?: number
} {
  const { min, max } = range ?? {}
  if ((min ?? 0) < 0 || (max ?? 0) < 0) throw queryError('heights are not negative')
  return {
    ...(min === null || min === undefined || min === 0 ? {} : { minHeight: min }),
    ...(max === null || max === undefined ? {} : { maxHeight: max }),
  }
}

/** Rows of a page: the default where it is absent, cut down to the maximum. Throws a GraphQLError on less than 1. */
export function pageSize(first: number | null | undefined, limits: QueryLimits): number {
  if (first === null || first === undefined) return 10
  if (first < 1) throw queryError('first must be at least 1')
  return Math.min(first, limits.pageMax)
}

/**
 * The selection that the arguments of `transactions` describe. Throws a GraphQLError where they are wrong.
 */
export function selectionOf(args: TransactionsArguments, limits: QueryLimits): Selection {
  const ids = some(args.ids)
  const owners = some(args.owners)
  const recipients = some(args.recipients)
  const bundledIn = args.bundledIn === undefined ? args.parent : args.bundledIn
  const tags = some(args.tags)
  if (tags !== undefined) within(tags, limits.tagsMax, 'tags')
  const seen = args.ingested_at ?? {}
  return {
    ...(ids === undefined ? {} : { ids: bytesOf(ids, limits, 'ids') }),
    ...(owners === undefined ? {} : { owners: bytesOf(owners, limits, 'owners') }),
    ...(recipients === undefined ? {} : { recipients: targetsOf(recipients, limits) }),
    ...(tags === undefined ? {} : { tags: tags.flatMap((tag) => tagSelections(tag, limits)) }),
    ...(bundledIn === undefined
      ? {}
      : { bundledIn: bundledIn === null ? null : bytesOf(bundledIn, limits, 'bundledIn') }),
    ...heightsOf(args.block),
    ...(seen.min === null || seen.min === undefined ? {} : { minSeen: seen.min }),
    ...(seen.max === null || seen.max === undefined ? {} : { maxSeen: seen.max }),
  }
}
